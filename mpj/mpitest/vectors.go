package mpitest

import (
	"cmp"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Collectives with blocks of different lengths (MPI 4.0, 6.5 to 6.8).
var vectors = []Test{
	{"gatherv, scatterv and allgatherv do not change gaps", 1, true, gaps},
	{"gatherv, scatterv and allgatherv work in place", 1, true, gapsInPlace},
	{"alltoallv sends each rank its part", 1, true, triangle},
	{"alltoallw takes a datatype for each rank", 1, true, alltoallw},
	{"alltoallw works in place", 1, true, alltoallwInPlace},
}

// blocks describes blocks of different lengths, some of them 0, with a gap after each.
type blocks struct {
	counts, displs []int
	length         int
}

func gappy(n int) blocks {
	var b blocks
	for i := range n {
		b.counts = append(b.counts, 2*i%5)
		b.displs = append(b.displs, b.length)
		b.length += 2*i%5 + 2
	}
	return b
}

// filled returns a slice with the contributions of all ranks at their positions.
func (b blocks) filled() []int64 {
	s := make([]int64, b.length)
	for i, count := range b.counts {
		copy(s[b.displs[i]:], seq[int64](i, count))
	}
	return s
}

func gaps(w *mpj.World) error {
	c, b := w.Comm, gappy(w.Size())
	me := seq[int64](c.Rank(), b.counts[c.Rank()])
	for root := range w.Size() {
		gathered, scattered := make([]int64, b.length), make([]int64, len(me))
		err := cmp.Or(mpj.Gatherv(c, me, gathered, b.counts, b.displs, root),
			mpj.Scatterv(c, b.filled(), b.counts, b.displs, scattered, root), same("Scatterv", scattered, me))
		if err == nil && c.Rank() == root {
			err = same("Gatherv", gathered, b.filled())
		}
		if err != nil {
			return err
		}
	}
	everywhere := make([]int64, b.length)
	return cmp.Or(mpj.Allgatherv(c, me, everywhere, b.counts, b.displs), same("Allgatherv", everywhere, b.filled()))
}

func gapsInPlace(w *mpj.World) error {
	c, b := w.Comm, gappy(w.Size())
	me, root := seq[int64](c.Rank(), b.counts[c.Rank()]), w.Size()-1
	mine := make([]int64, b.length)
	copy(mine[b.displs[c.Rank()]:], me)
	gathered := append([]int64{}, mine...)
	var err error
	if c.Rank() == root {
		err = cmp.Or(mpj.Gatherv(c, nil, gathered, b.counts, b.displs, root), same("Gatherv", gathered, b.filled()),
			mpj.Scatterv[int64](c, gathered, b.counts, b.displs, nil, root))
	} else {
		scattered := make([]int64, len(me))
		err = cmp.Or(mpj.Gatherv(c, me, nil, nil, nil, root), mpj.Scatterv(c, nil, nil, nil, scattered, root), same("Scatterv", scattered, me))
	}
	return cmp.Or(err, mpj.Allgatherv(c, nil, mine, b.counts, b.displs), same("Allgatherv", mine, b.filled()))
}

// triangle sends i+j elements from rank i to rank j, with the blocks in descending order of ranks.
// It then exchanges them back in place.
func triangle(w *mpj.World) error {
	c, n := w.Comm, w.Size()
	counts, displs := make([]int, n), make([]int, n)
	length := 0
	for j := n - 1; j >= 0; j-- {
		counts[j], displs[j] = c.Rank()+j, length
		length += counts[j]
	}
	sent, want := make([]int32, length), make([]int32, length)
	for j := range n {
		for k := range counts[j] {
			sent[displs[j]+k] = int32(10000*c.Rank() + 100*j + k)
			want[displs[j]+k] = int32(10000*j + 100*c.Rank() + k)
		}
	}
	got := make([]int32, length)
	if err := cmp.Or(mpj.Alltoallv(c, sent, counts, displs, got, counts, displs), same("Alltoallv", got, want)); err != nil {
		return err
	}
	return cmp.Or(mpj.Alltoallv(c, nil, nil, nil, got, counts, displs), same("in place", got, sent))
}

// alltoallw sends each rank a column of a matrix, which becomes a row.
func alltoallw(w *mpj.World) error {
	n := w.Size()
	var from []int64
	for i := range n * n {
		from = append(from, int64(1000*w.Rank()+i))
	}
	to := make([]int64, n*n)
	send, recv := make([]mpj.Typed, n), make([]mpj.Typed, n)
	for j := range n {
		send[j] = mpj.TypeOf[int64]().Vector(n, 1, n).At(from, j, 1)
		recv[j] = mpj.TypeOf[int64]().Contiguous(n).At(to, j*n, 1)
	}
	if err := mpj.Alltoallw(w.Comm, send, recv); err != nil {
		return err
	}
	for i := range n * n {
		source, row := i/n, i%n
		if err := equal("Alltoallw", to[i], int64(1000*source+row*n+w.Rank())); err != nil {
			return err
		}
	}
	return nil
}

// alltoallwInPlace transposes a matrix of which each rank has a row, with gaps between the
// elements. It uses the blocking and the non-blocking call.
func alltoallwInPlace(w *mpj.World) error {
	n, rank := w.Size(), w.Rank()
	for _, wait := range []bool{true, false} {
		row := make([]int64, 2*n)
		items := make([]mpj.Typed, n)
		for j := range n {
			row[2*j], row[2*j+1] = int64(100*rank+j), -1
			items[j] = mpj.TypeOf[int64]().Resized(0, 16).At(row, 2*j, 1)
		}
		var err error
		if wait {
			err = mpj.Alltoallw(w.Comm, nil, items)
		} else {
			var r *mpj.Request
			if r, err = mpj.Ialltoallw(w.Comm, nil, items); err == nil {
				_, err = r.Wait()
			}
		}
		if err != nil {
			return err
		}
		for j := range n {
			if err := cmp.Or(equal("block", row[2*j], int64(100*j+rank)), equal("gap", row[2*j+1], -1)); err != nil {
				return err
			}
		}
	}
	return nil
}
