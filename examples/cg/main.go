package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
)

var kernel = npb.Kernel{Name: "cg", Classes: []string{"S", "W", "A", "B"}, Run: run}

func main() { kernel.Main() }

func run(r *npb.Run) (npb.Result, error) {
	if err := r.PowerOfTwo(maxRanks); err != nil {
		return npb.Result{}, err
	}
	class := classes[r.Class]
	g := newGrid(r, class.order)
	s := newSolver(g, newMatrix(class, g.block()))

	// A first iteration, which is not timed, touches all memory and opens all channels.
	if _, _, err := s.iterate(class, 1); err != nil {
		return npb.Result{}, err
	}
	if err := r.Start(); err != nil {
		return npb.Result{}, err
	}
	zeta, residual, err := s.iterate(class, class.iterations)
	if err != nil {
		return npb.Result{}, err
	}
	if err := r.Stop(); err != nil {
		return npb.Result{}, err
	}
	return npb.Result{
		Fields: []npb.Field{
			npb.Fieldf("Size", "%d rows", class.order),
			npb.Fieldf("Iterations", "%d", class.iterations),
			npb.Fieldf("Residual", "%.6e", residual),
			npb.Fieldf("Zeta", "%.13f", zeta),
		},
		Operations: class.operations(),
		Verified:   class.verify(zeta),
	}, nil
}

// iterate runs n iterations of the inverse power method from the vector of ones. It returns the
// estimate zeta of the eigenvalue and the residual of the last linear system.
func (s *solver) iterate(c class, n int) (zeta, residual float64, err error) {
	for i := range s.x {
		s.x[i] = 1
	}
	for range n {
		if residual, err = s.solve(); err != nil {
			return 0, 0, err
		}
		sums, err := s.grid.sum(dot(s.x, s.z), dot(s.z, s.z))
		if err != nil {
			return 0, 0, err
		}
		zeta = c.shift + 1/sums[0]
		scale := 1 / math.Sqrt(sums[1])
		for i, z := range s.z {
			s.x[i] = scale * z
		}
	}
	return zeta, residual, nil
}
