package main

import "math"

// A solver finds z with A z = x by the conjugate gradient method. All vectors
// are the pieces that belong with this rank's column of the matrix, except w.
type solver struct {
	grid *grid
	a    matrix

	x, z, p, q, r []float64
	w             []float64 // a product by A, before the ranks of a row have added theirs
}

func newSolver(g *grid, a matrix) *solver {
	n := g.block().columns.len()
	s := &solver{grid: g, a: a, w: make([]float64, g.block().rows.len())}
	for _, v := range []*[]float64{&s.x, &s.z, &s.p, &s.q, &s.r} {
		*v = make([]float64, n)
	}
	return s
}

// solve leaves in z an approximation of the solution for x, after a fixed
// number of steps, and returns the norm of what A z still lacks.
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

// step goes one step along the direction p. rho is the square of the length of
// the residual r, and so is what it returns.
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

// multiply puts A v into to.
func (s *solver) multiply(v, to []float64) error {
	s.a.multiply(v, s.w)
	return s.grid.transpose(s.w, to)
}

func (s *solver) dot(a, b []float64) (float64, error) {
	sum, err := s.grid.sum(dot(a, b))
	return sum[0], err
}

// dot returns the scalar product of two pieces of vectors.
func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
