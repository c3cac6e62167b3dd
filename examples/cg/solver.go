package main

import "math"

// A solver solves A z = x for z by the conjugate gradient method. All vectors except w are the
// pieces that belong to this rank's column of the matrix.
type solver struct {
	grid *grid
	a    matrix

	x, z, p, q, r []float64
	w             []float64 // a product with A, before the sum over the ranks of a row
}

func newSolver(g *grid, a matrix) *solver {
	n := g.block().columns.len()
	s := &solver{grid: g, a: a, w: make([]float64, g.block().rows.len())}
	for _, v := range []*[]float64{&s.x, &s.z, &s.p, &s.q, &s.r} {
		*v = make([]float64, n)
	}
	return s
}

// solve sets z to an approximate solution for x, after a fixed number of steps, and returns the
// norm of x - A z.
func (s *solver) solve() (residual float64, err error) {
	clear(s.z)
	copy(s.r, s.x)
	copy(s.p, s.x)
	rho, err := s.dot(s.r, s.r)
	for range steps {
		if err == nil {
			rho, err = s.step(rho)
		}
	}
	if err != nil {
		return 0, err
	}
	if err := s.multiply(s.z, s.r); err != nil {
		return 0, err
	}
	var sum float64
	for i, x := range s.x {
		sum += (x - s.r[i]) * (x - s.r[i])
	}
	total, err := s.grid.sum(sum)
	return math.Sqrt(total[0]), err
}

// step takes one step along the direction p. rho is the squared norm of the residual r before the
// step; the result is the squared norm after the step.
func (s *solver) step(rho float64) (float64, error) {
	if err := s.multiply(s.p, s.q); err != nil {
		return 0, err
	}
	pq, err := s.dot(s.p, s.q)
	if err != nil {
		return 0, err
	}
	alpha := rho / pq
	z, p, q, r := s.z, s.p[:len(s.z)], s.q[:len(s.z)], s.r[:len(s.z)]
	for i := range z {
		z[i] += alpha * p[i]
		r[i] -= alpha * q[i]
	}
	next, err := s.dot(r, r)
	if err != nil {
		return 0, err
	}
	beta := next / rho
	for i := range p {
		p[i] = r[i] + beta*p[i]
	}
	return next, nil
}

// multiply stores A v in to.
func (s *solver) multiply(v, to []float64) error {
	s.a.multiply(v, s.w)
	return s.grid.transpose(s.w, to)
}

func (s *solver) dot(a, b []float64) (float64, error) {
	sum, err := s.grid.sum(dot(a, b))
	return sum[0], err
}

// dot returns the scalar product of two distributed vectors.
func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
