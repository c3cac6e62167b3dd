package main

// A region is a part of the complex plane, and the size of its picture.
type region struct {
	x, y          float64 // the centre
	span          float64 // width of the region
	width, height int     // pixels
	limit         int32   // number of steps after which a point counts as part of the set
}

// row computes the steps of one row of pixels, counted from the top. For each pixel it stores the
// number of steps of z -> z² + c after which z leaves the circle of radius 2. It stores 0 if z is
// still inside the circle after limit steps.
//
// Here and below, conversions to float64 prevent the fusion of a product and a sum into one
// instruction. Processors with that instruction would compute a different picture.
func (r region) row(row int, steps []int32) {
	pixel := r.span / float64(r.width)
	y := r.y + float64((float64(r.height-1)/2-float64(row))*pixel)
	for column := range steps {
		x := r.x + float64((float64(column)-float64(r.width-1)/2)*pixel)
		steps[column] = escape(x, y, r.limit)
	}
}

// escape returns the number of steps after which the point x+iy is known to be outside the set, or 0
// if it is not known after limit steps.
func escape(x, y float64, limit int32) int32 {
	if inside(x, y) {
		return 0
	}
	var re, im float64
	for step := int32(1); step <= limit; step++ {
		re2, im2 := float64(re*re), float64(im*im)
		if re2+im2 > 4 {
			return step
		}
		re, im = re2-im2+x, float64(2*re*im)+y
	}
	return 0
}

// inside reports whether a point lies in the set's cardioid or in the circle to the left of it.
// These two regions contain most of the points that would take limit steps.
func inside(x, y float64) bool {
	y2 := float64(y * y)
	q := float64((x-0.25)*(x-0.25)) + y2
	return float64(q*(q+(x-0.25))) <= y2/4 || float64((x+1)*(x+1))+y2 <= 1.0/16
}
