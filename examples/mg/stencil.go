package main

// Each of these operators reads 27 points for each point that it writes. For a row, they precompute
// the sums of the four nearest neighbours and of the four diagonal neighbours. Three adjacent
// points share these sums, which saves many additions.

// around computes two sums for each point along row (j, k), over its neighbours in the plane across
// x. near gets the sum of the 4 nearest points, and far the sum of the 4 diagonal points.
func (f *field) around(j, k int, near, far []float64) {
	sum4(near, f.row(j-1, k), f.row(j+1, k), f.row(j, k-1), f.row(j, k+1))
	sum4(far, f.row(j-1, k-1), f.row(j+1, k-1), f.row(j-1, k+1), f.row(j+1, k+1))
}

func sum4(sum, a, b, c, d []float64) {
	a, b, c, d = a[:len(sum)], b[:len(sum)], c[:len(sum)], d[:len(sum)]
	for i := range sum {
		sum[i] = a[i] + b[i] + c[i] + d[i]
	}
}

// residualRow sets r to v - A u; r may be v. near and far are the sums of u.
func residualRow(r, v, u, near, far []float64) {
	n := len(r)
	v, u, near, far = v[:n], u[:n], near[:n], far[:n]
	self, edges, corners := laplace[0], laplace[2], laplace[3]
	for i := 1; i < n-1; i++ {
		r[i] = v[i] - self*u[i] -
			edges*(far[i]+near[i-1]+near[i+1]) -
			corners*(far[i-1]+far[i+1])
	}
}

// smoothRow adds S r to u. near and far are the sums of r.
func smoothRow(s stencil, u, r, near, far []float64) {
	n := len(u)
	r, near, far = r[:n], near[:n], far[:n]
	self, faces, edges := s[0], s[1], s[2]
	for i := 1; i < n-1; i++ {
		u[i] += self*r[i] +
			faces*(r[i-1]+r[i+1]+near[i]) +
			edges*(far[i]+near[i-1]+near[i+1])
	}
}

// restrictRow sets each coarse point to a weighted mean of the fine points around it. near and far
// are the sums of fine.
func restrictRow(coarse, fine, near, far []float64) {
	for i := 1; i < len(coarse)-1; i++ {
		f, n, d := fine[2*i-1:2*i+2], near[2*i-1:2*i+2], far[2*i-1:2*i+2]
		coarse[i] = 0.5*f[1] +
			0.25*(f[0]+f[2]+n[1]) +
			0.125*(n[0]+n[2]+d[1]) +
			0.0625*(d[0]+d[2])
	}
}

// interpolateRow adds weighted coarse points to a row of fine points. A fine point at the position
// of a coarse point gets the value of that point; a fine point between two coarse points gets their
// mean.
func interpolateRow(fine, coarse []float64, weight float64) {
	half, left := weight/2, coarse[0]
	for _, right := range coarse[1:] {
		pair := fine[:2]
		pair[0] += weight * left
		pair[1] += half * (left + right)
		fine, left = fine[2:], right
	}
}

func sum2(sum, a, b []float64) {
	a, b = a[:len(sum)], b[:len(sum)]
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
}
