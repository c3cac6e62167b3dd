package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A solver contains one rank's slabs.
type solver struct {
	class class
	run   *npb.Run
	comm  *mpj.Comm

	ny, nz      int // points along y in a slab of frequencies, and along z in a slab of space
	frequencies []complex128
	space       []complex128
	parts       []complex128 // the slab in space, divided into the parts of all ranks for the exchange

	alongX, alongY, alongZ *transform
	decay                  [3][]float64 // factors of one time step, along x, y and z
}

func newSolver(run *npb.Run, c class) *solver {
	comm := run.World.Comm
	s := &solver{
		class: c, run: run, comm: comm,
		ny: c.ny / comm.Size(), nz: c.nz / comm.Size(),
		alongX: newTransform(c.nx), alongY: newTransform(c.ny), alongZ: newTransform(c.nz),
	}
	n := c.points() / comm.Size()
	s.frequencies, s.space, s.parts = make([]complex128, n), make([]complex128, n), make([]complex128, n)
	return s
}

// start generates the initial state from random numbers, and its frequencies.
func (s *solver) start() error {
	for i, n := range [3]int{s.class.nx, s.class.ny, s.class.nz} {
		s.decay[i] = decay(n)
	}
	random := npb.Seed.Skip(uint64(2 * len(s.space) * s.comm.Rank()))
	for i := range s.space {
		var re, im float64
		random, re = random.Next()
		random, im = random.Next()
		s.space[i] = complex(re, im)
	}
	return s.transform()
}

// decay returns the factors of one time step for the n frequencies along an axis. The frequencies of
// the upper half are negative.
func decay(n int) []float64 {
	const alpha = 1e-6
	factors := make([]float64, n)
	for i := range factors {
		k := float64((i+n/2)%n - n/2)
		factors[i] = math.Exp(-4 * alpha * math.Pi * math.Pi * k * k)
	}
	return factors
}

// evolve advances the frequencies by one time step, and also stores them in the memory of space.
func (s *solver) evolve() {
	row := 0
	for _, dz := range s.decay[2] {
		for _, dy := range s.decay[1][s.comm.Rank()*s.ny:][:s.ny] {
			to := s.space[row:][:s.class.nx]
			evolveRow(s.frequencies[row:][:len(to)], to, s.decay[0], dy*dz)
			row += len(to)
		}
	}
}

func evolveRow(from, to []complex128, decay []float64, factor float64) {
	to, decay = to[:len(from)], decay[:len(from)]
	for i, v := range from {
		d := decay[i] * factor
		v = complex(real(v)*d, imag(v)*d)
		from[i], to[i] = v, v
	}
}

// transform transforms space into frequencies, and overwrites space.
func (s *solver) transform() error {
	plane := s.class.nx * s.class.ny
	for k := range s.nz {
		points := s.space[k*plane:][:plane]
		s.alongX.contiguous(points, s.class.ny, forward)
		s.alongY.strided(points, s.class.nx, s.class.nx, forward)
	}
	s.eachRun(func(part, slab []complex128) { copy(part, slab) })
	if err := s.exchange(s.parts, s.frequencies); err != nil {
		return err
	}
	s.alongZ.strided(s.frequencies, s.ny*s.class.nx, s.ny*s.class.nx, forward)
	return nil
}

// transformBack transforms the frequencies in the memory of space back into space.
func (s *solver) transformBack() error {
	s.alongZ.strided(s.space, s.ny*s.class.nx, s.ny*s.class.nx, backward)
	if err := s.exchange(s.space, s.parts); err != nil {
		return err
	}
	s.eachRun(func(part, slab []complex128) { copy(slab, part) })
	plane := s.class.nx * s.class.ny
	for k := range s.nz {
		points := s.space[k*plane:][:plane]
		s.alongY.strided(points, s.class.nx, s.class.nx, backward)
		s.alongX.contiguous(points, s.class.ny, backward)
	}
	return nil
}

// eachRun calls move for each run of memory that is contiguous both in a rank's part and in the
// slab in space. A slab of frequencies consists of its parts, one after the other.
func (s *solver) eachRun(move func(part, slab []complex128)) {
	n := s.ny * s.class.nx
	for rank := range s.comm.Size() {
		for k := range s.nz {
			move(s.parts[(rank*s.nz+k)*n:][:n], s.space[(k*s.comm.Size()+rank)*n:][:n])
		}
	}
}

// exchange sends every rank its part of from.
func (s *solver) exchange(from, to []complex128) error {
	return s.run.Communicate(func() error { return mpj.Alltoall(s.comm, from, to) })
}

// checksum returns the sum of 1024 points, divided by the number of all points.
func (s *solver) checksum() (complex128, error) {
	const samples = 1024
	sum := make([]complex128, 1)
	first := s.comm.Rank() * s.nz
	for i := 1; i <= samples; i++ {
		x, y, z := i%s.class.nx, 3*i%s.class.ny, 5*i%s.class.nz-first
		if 0 <= z && z < s.nz {
			sum[0] += s.space[x+s.class.nx*(y+s.class.ny*z)]
		}
	}
	err := s.run.Communicate(func() error { return mpj.Allreduce(s.comm, sum, sum, mpj.Sum) })
	return sum[0] / complex(float64(s.class.points()), 0), err
}
