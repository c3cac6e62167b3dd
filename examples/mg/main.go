package main

import "github.com/p2pmpi/p2pmpi/examples/internal/npb"

var kernel = npb.Kernel{Name: "mg", Classes: []string{"S", "W", "A", "B"}, Run: run}

func main() { kernel.Main() }

func run(r *npb.Run) (npb.Result, error) {
	if err := r.PowerOfTwo(maxRanks); err != nil {
		return npb.Result{}, err
	}
	class := classes[r.Class]
	s := newSolver(newMesh(r), class)
	if err := s.charge(); err != nil {
		return npb.Result{}, err
	}
	// A first cycle, which is not timed, touches all memory and opens all channels.
	if _, err := s.solve(1); err != nil {
		return npb.Result{}, err
	}
	if err := r.Start(); err != nil {
		return npb.Result{}, err
	}
	norm, err := s.solve(class.iterations)
	if err != nil {
		return npb.Result{}, err
	}
	if err := r.Stop(); err != nil {
		return npb.Result{}, err
	}
	return npb.Result{
		Fields: []npb.Field{
			npb.Fieldf("Size", "%d x %[1]d x %[1]d points", class.points()),
			npb.Fieldf("Iterations", "%d", class.iterations),
			npb.Fieldf("Residual", "%.13e", norm),
		},
		Operations: class.operations(),
		Verified:   class.verify(norm),
	}, nil
}

// solve runs n V-cycles from zero and returns the norm of the residual.
func (s *solver) solve(n int) (float64, error) {
	u, r := s.u[s.class.log], s.r[s.class.log]
	clear(u.values)
	if err := s.residual(u, s.v, r); err != nil {
		return 0, err
	}
	for range n {
		if err := s.cycle(s.class.log); err != nil {
			return 0, err
		}
		if err := s.residual(u, s.v, r); err != nil {
			return 0, err
		}
	}
	return s.norm(r)
}
