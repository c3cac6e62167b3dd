package main

// rectangles returns the part that rectangles from up to, not including, to
// contribute to the integral of 4/(1+x²) over [0, 1], divided into n of them.
// The height of a rectangle is the value in its middle.
//
// The conversion to float64 forbids to fuse product and sum into one
// instruction: replicas on different processors must find the same.
func rectangles(from, to, n int) float64 {
	width := 1 / float64(n)
	sum := 0.0
	for i := from; i < to; i++ {
		x := (float64(i) + 0.5) * width
		sum += 4 / (1 + float64(x*x))
	}
	return sum * width
}
