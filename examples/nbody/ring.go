package main

import (
	"io"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// ringTag is the tag of the blocks that are passed around the ring.
const ringTag = 1

// A ring simulates bodies that are divided among the ranks of c.
type ring struct {
	c     *mpj.Comm
	count int
	s     *system // bodies of this rank
	// The present block and the arriving one, each with room for the longest block.
	here, coming block
}

func newRing(c *mpj.Comm, count int, seed uint64) *ring {
	_, longest := share(count, 0, c.Size())
	return &ring{
		c: c, count: count, s: newSystem(count, c.Rank(), c.Size(), seed),
		here: make(block, longest*perBody), coming: make(block, longest*perBody),
	}
}

// forces computes the gravity of all bodies at the bodies of this rank.
func (r *ring) forces() error {
	clear(r.s.acceleration)
	r.s.potential = 0
	rank, ranks := r.c.Rank(), r.c.Size()
	here := r.here[:copy(r.here, r.s.bodies)]
	for k := range ranks {
		// here is the block of the rank k places before this rank.
		if k == ranks-1 {
			r.s.pull(here, k == 0) // the last block is not sent to the next rank
			break
		}
		from, to := share(r.count, (rank-k-1+ranks)%ranks, ranks)
		coming := r.coming[:(to-from)*perBody]
		receive, err := mpj.Irecv(r.c, coming, (rank-1+ranks)%ranks, ringTag)
		if err != nil {
			return err
		}
		send, err := mpj.Isend(r.c, here, (rank+1)%ranks, ringTag)
		if err != nil {
			return err
		}
		r.s.pull(here, k == 0) // pull only reads the block that is being sent
		if _, err := mpj.Waitall(receive, send); err != nil {
			return err
		}
		r.here, r.coming = r.coming, r.here
		here = coming
	}
	return nil
}

// checkpointEvery is the number of steps between two checkpoints. It bounds the number of steps that
// a replica that joins a long run must recompute.
const checkpointEvery = 20

// run advances all bodies by steps of the given time. It calls done after every step.
func (r *ring) run(w *mpj.World, steps int, time float64, done func(step int)) error {
	for step := 0; step < steps; step++ {
		if step%checkpointEvery == 0 {
			err := w.Checkpoint(
				func(to io.Writer) error { return r.s.save(to, step) },
				func(from io.Reader) (err error) { step, err = r.s.restore(from); return err })
			if err != nil {
				return err
			}
		}
		r.s.kick(time / 2)
		r.s.drift(time)
		if err := r.forces(); err != nil {
			return err
		}
		r.s.kick(time / 2)
		done(step + 1)
	}
	return nil
}

// energy returns the energy of all bodies at rank 0. The forces must have been computed for the
// present positions. The potential of both bodies of a pair includes the pair, so potentials count
// half.
func (r *ring) energy() (float64, error) {
	e := []float64{r.s.kinetic() + r.s.potential/2}
	err := mpj.Reduce(r.c, e, e, mpj.Sum, 0)
	return e[0], err
}

// gather returns all bodies and their velocities at rank 0.
func (r *ring) gather() (block, []vector, error) {
	positions := make([]int, r.c.Size())
	velocities := make([]int, r.c.Size())
	for rank := range positions {
		from, to := share(r.count, rank, r.c.Size())
		positions[rank], velocities[rank] = (to-from)*perBody, (to-from)*3
	}
	var p, v []float64
	if r.c.Rank() == 0 {
		p, v = make([]float64, r.count*perBody), make([]float64, r.count*3)
	}
	if err := mpj.Gatherv(r.c, r.s.bodies, p, positions, nil, 0); err != nil {
		return nil, nil, err
	}
	mine := make([]float64, 0, 3*len(r.s.velocities))
	for _, u := range r.s.velocities {
		mine = append(mine, u.x, u.y, u.z)
	}
	if err := mpj.Gatherv(r.c, mine, v, velocities, nil, 0); err != nil {
		return nil, nil, err
	}
	all := make([]vector, len(v)/3)
	for i := range all {
		all[i] = vector{v[3*i], v[3*i+1], v[3*i+2]}
	}
	return p, all, nil
}
