package main

import (
	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A mesh is a rank's position in a box of ranks.
type mesh struct {
	comm  *mpj.Comm
	run   *npb.Run // its clock measures the time of communication
	ranks [3]int   // number of ranks along each axis
	place [3]int

	in, out [2][]float64 // face buffers: [0] for the lower end of the axis
}

// newMesh places the rank of run in a box of ranks that is as close to a cube as possible. The
// number of ranks must be a power of two. The box is divided across z first, where a face is
// contiguous in memory, and across x last.
func newMesh(run *npb.Run) *mesh {
	m := &mesh{comm: run.World.Comm, run: run, ranks: [3]int{1, 1, 1}}
	axis := z
	for n := run.Size(); n > 1; n /= 2 {
		m.ranks[axis] *= 2
		axis = (axis + 2) % 3
	}
	m.place = m.placeOf(m.comm.Rank())
	return m
}

// placeOf returns the position of a rank.
func (m *mesh) placeOf(rank int) [3]int {
	return [3]int{rank % m.ranks[x], rank / m.ranks[x] % m.ranks[y], rank / (m.ranks[x] * m.ranks[y])}
}

// neighbour returns the rank that is steps away along an axis, with wrap-around.
func (m *mesh) neighbour(axis, steps int) int {
	p := m.place
	p[axis] = (p[axis] + steps + m.ranks[axis]) % m.ranks[axis]
	return p[x] + m.ranks[x]*(p[y]+m.ranks[y]*p[z])
}

// divides reports whether a grid of n points a side can be divided among the ranks.
func (m *mesh) divides(n int) bool { return n >= max(m.ranks[x], m.ranks[y], m.ranks[z]) }

// box returns the numbers of points of a rank's box, for a grid of n points a side.
func (m *mesh) box(n int) [3]int {
	return [3]int{n / m.ranks[x], n / m.ranks[y], n / m.ranks[z]}
}

// corner returns the first point of a rank's box of n points.
func (m *mesh) corner(rank int, n [3]int) [3]int {
	p := m.placeOf(rank)
	return [3]int{p[x] * n[x], p[y] * n[y], p[z] * n[z]}
}

// update fills the layer around f from the neighbours' boxes, axis by axis.
func (m *mesh) update(f *field) error {
	for axis, inside := range f.inside() {
		n := f.faceLength(axis)
		for end := range 2 {
			m.in[end], m.out[end] = resize(m.in[end], n), resize(m.out[end], n)
		}
		f.copyFace(axis, 1, m.out[0], false)
		f.copyFace(axis, inside, m.out[1], false)
		if f.whole || m.ranks[axis] == 1 { // periodic boundary
			m.in[0], m.out[1] = m.out[1], m.in[0]
			m.in[1], m.out[0] = m.out[0], m.in[1]
		} else if err := m.run.Communicate(func() error { return m.swap(axis) }); err != nil {
			return err
		}
		f.copyFace(axis, 0, m.in[0], true)
		f.copyFace(axis, inside+1, m.in[1], true)
	}
	return nil
}

// swap exchanges faces with both neighbours along an axis. With two ranks, both neighbours are the
// same rank, and the tag identifies the end of the box.
func (m *mesh) swap(axis int) error {
	lower, upper := m.neighbour(axis, -1), m.neighbour(axis, 1)
	var requests [4]*mpj.Request
	var err error
	if requests[0], err = mpj.Irecv(m.comm, m.in[0], lower, 2*axis+1); err != nil {
		return err
	}
	if requests[1], err = mpj.Irecv(m.comm, m.in[1], upper, 2*axis); err != nil {
		return err
	}
	if requests[2], err = mpj.Isend(m.comm, m.out[0], lower, 2*axis); err != nil {
		return err
	}
	if requests[3], err = mpj.Isend(m.comm, m.out[1], upper, 2*axis+1); err != nil {
		return err
	}
	_, err = mpj.Waitall(requests[:]...)
	return err
}

// gather assembles the boxes of all ranks into the whole grid, at every rank.
func (m *mesh) gather(part, whole *field) error {
	mine := part.pack()
	all := make([]float64, len(mine)*m.comm.Size())
	if err := m.run.Communicate(func() error { return mpj.Allgather(m.comm, mine, all) }); err != nil {
		return err
	}
	for rank := range m.comm.Size() {
		whole.unpack(all[rank*len(mine):], m.corner(rank, part.inside()), part.inside())
	}
	return m.update(whole)
}

// resize returns a slice of length n, in the memory of s if that is large enough.
func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}
