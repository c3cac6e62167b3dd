package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A solver contains this rank's part of all grids. Grid k has 2^k points per side.
type solver struct {
	class class
	mesh  *mesh

	v    *field   // the right-hand side, on the finest grid
	u, r []*field // the solution or correction, and the residual, of each grid

	// The coarsest grid that is divided among the ranks, and the whole of that grid if coarser grids
	// exist.
	divided        int
	wholeU, wholeR *field

	near, far []float64 // scratch rows
}

func newSolver(m *mesh, c class) *solver {
	s := &solver{class: c, mesh: m, divided: 1}
	for !m.divides(1 << s.divided) {
		s.divided++
	}
	s.u, s.r = make([]*field, c.log+1), make([]*field, c.log+1)
	for k := 1; k <= c.log; k++ {
		n, whole := 1<<k, k < s.divided
		box := [3]int{n, n, n}
		if !whole {
			box = m.box(n)
		}
		s.u[k], s.r[k] = newField(box, whole), newField(box, whole)
	}
	if s.divided > 1 {
		n := 1 << s.divided
		s.wholeU, s.wholeR = newField([3]int{n, n, n}, true), newField([3]int{n, n, n}, true)
	}
	s.v = newField(m.box(c.points()), false)
	s.near, s.far = make([]float64, c.points()+2), make([]float64, c.points()+2)
	return s
}

// cycle improves u on grid k, given the residual r of that grid. On all grids except the finest it
// starts from zero.
func (s *solver) cycle(k int) error {
	u, r, right := s.u[k], s.r[k], s.r[k]
	if k == s.class.log {
		right = s.v
	} else {
		clear(u.values)
	}
	if k == 1 {
		return s.smooth(r, u)
	}
	if err := s.restrict(k); err != nil {
		return err
	}
	if err := s.cycle(k - 1); err != nil {
		return err
	}
	s.interpolate(k)
	if err := s.residual(u, right, r); err != nil {
		return err
	}
	return s.smooth(r, u)
}

// residual sets r to v - A u; r may be v.
func (s *solver) residual(u, v, r *field) error {
	near, far := s.near[:u.size[x]], s.far[:u.size[x]]
	u.rows(func(j, k int) {
		u.around(j, k, near, far)
		residualRow(r.row(j, k), v.row(j, k), u.row(j, k), near, far)
	})
	return s.mesh.update(r)
}

// smooth adds an approximate solution for r to u.
func (s *solver) smooth(r, u *field) error {
	near, far := s.near[:r.size[x]], s.far[:r.size[x]]
	r.rows(func(j, k int) {
		r.around(j, k, near, far)
		smoothRow(s.class.smoother, u.row(j, k), r.row(j, k), near, far)
	})
	return s.mesh.update(u)
}

// restrict computes the residual of the next coarser grid from the residual of grid k.
func (s *solver) restrict(k int) error {
	fine, coarse := s.r[k], s.r[k-1]
	if k == s.divided {
		if err := s.mesh.gather(fine, s.wholeR); err != nil {
			return err
		}
		fine = s.wholeR
	}
	near, far := s.near[:fine.size[x]], s.far[:fine.size[x]]
	coarse.rows(func(j, k int) {
		fine.around(2*j, 2*k, near, far)
		restrictRow(coarse.row(j, k), fine.row(2*j, 2*k), near, far)
	})
	return s.mesh.update(coarse)
}

// interpolate adds the correction of the next coarser grid to grid k. The layer around the box is
// current if the layer of the coarser grid is.
func (s *solver) interpolate(k int) {
	fine, coarse := s.u[k], s.u[k-1]
	if k == s.divided {
		fine = s.wholeU
		clear(fine.values)
	}
	sum := s.near[:coarse.size[x]]
	for k := range coarse.size[z] - 1 {
		for j := range coarse.size[y] - 1 {
			here, beside, behind, across := coarse.row(j, k), coarse.row(j+1, k), coarse.row(j, k+1), coarse.row(j+1, k+1)
			interpolateRow(fine.row(2*j, 2*k), here, 1)
			sum2(sum, here, beside)
			interpolateRow(fine.row(2*j+1, 2*k), sum, 0.5)
			sum2(sum, here, behind)
			interpolateRow(fine.row(2*j, 2*k+1), sum, 0.5)
			sum4(sum, here, beside, behind, across)
			interpolateRow(fine.row(2*j+1, 2*k+1), sum, 0.25)
		}
	}
	if k == s.divided {
		s.u[k].take(fine, s.mesh.corner(s.mesh.comm.Rank(), s.u[k].inside()))
	}
}

// norm returns the root mean square of r.
func (s *solver) norm(r *field) (float64, error) {
	sum := make([]float64, 1)
	r.rows(func(j, k int) {
		for _, value := range r.row(j, k)[1 : r.size[x]-1] {
			sum[0] += value * value
		}
	})
	if err := s.mesh.run.Communicate(func() error {
		return mpj.Allreduce(s.mesh.comm, sum, sum, mpj.Sum)
	}); err != nil {
		return 0, err
	}
	return math.Sqrt(sum[0] / math.Pow(float64(s.class.points()), 3)), nil
}
