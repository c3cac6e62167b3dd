package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
)

var kernel = npb.Kernel{Name: "ft", Classes: []string{"S", "W", "A", "B"}, Run: run}

func main() { kernel.Main() }

func run(r *npb.Run) (npb.Result, error) {
	class := classes[r.Class]
	if err := r.PowerOfTwo(min(class.ny, class.nz)); err != nil {
		return npb.Result{}, err
	}
	s := newSolver(r, class)
	// A first transform, which is not timed, touches all memory and opens all channels.
	if err := s.start(); err != nil {
		return npb.Result{}, err
	}
	if err := r.Start(); err != nil {
		return npb.Result{}, err
	}
	checksums, err := s.solve()
	if err != nil {
		return npb.Result{}, err
	}
	if err := r.Stop(); err != nil {
		return npb.Result{}, err
	}
	return npb.Result{
		Fields:     fields(class, checksums),
		Operations: class.operations(),
		Verified:   class.verify(checksums),
	}, nil
}

// solve returns the checksums after each time step.
func (s *solver) solve() ([]complex128, error) {
	if err := s.start(); err != nil {
		return nil, err
	}
	var checksums []complex128
	for range s.class.checksums {
		s.evolve()
		if err := s.transformBack(); err != nil {
			return nil, err
		}
		sum, err := s.checksum()
		if err != nil {
			return nil, err
		}
		checksums = append(checksums, sum)
	}
	return checksums, nil
}

// fields returns the fields of the report that are specific to FT.
func fields(c class, checksums []complex128) []npb.Field {
	fields := []npb.Field{
		npb.Fieldf("Size", "%d x %d x %d points", c.nx, c.ny, c.nz),
		npb.Fieldf("Iterations", "%d", len(checksums)),
	}
	for i, sum := range checksums {
		fields = append(fields, npb.Fieldf(fmt.Sprintf("Checksum %d", i+1), "%.12e %.12e", real(sum), imag(sum)))
	}
	return fields
}
