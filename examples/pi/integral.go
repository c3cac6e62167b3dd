package main

// rectangles returns the contribution of rectangles [from, to) to the integral of 4/(1+x²) over [0,
// 1], which is divided into n rectangles. The height of a rectangle is the value at its centre.
//
// The conversion to float64 prevents the fusion of a product and a sum into one instruction, because
// replicas on different processors must get the same result.
func rectangles(from, to, n int) float64 {
	width := 1 / float64(n)
	sum := 0.0
	for i := from; i < to; i++ {
		x := (float64(i) + 0.5) * width
		sum += 4 / (1 + float64(x*x))
	}
	return sum * width
}
