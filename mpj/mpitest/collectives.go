package mpitest

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Collective communication that moves data (MPI 4.0, 6.3 to 6.8). Each operation is compared with
// its definition, for every root and with elements of every size.
var collectives = []Test{
	{"barrier returns when all ranks have called it", 1, true, barrier},
	{"bcast, gather, scatter, allgather and alltoall match their definitions", 1, true, movements},
	{"gather, scatter, allgather and alltoall work in place", 1, true, inPlace},
	{"collectives of different communicators run concurrently", 1, true, sideBySide},
	{"collectives and messages of one communicator are separate", 1, true, apart},
}

// barrier sends a message to the next rank before each barrier. After the barrier the neighbour has
// sent its message, so every rank can receive it.
func barrier(w *mpj.World) error {
	for round := range 10 {
		if err := cmp.Or(mpj.Send(w.Comm, []int{round}, right(w.Comm), 0), mpj.Barrier(w.Comm)); err != nil {
			return err
		}
		buf := make([]int, 1)
		_, err := mpj.Recv(w.Comm, buf, left(w.Comm), 0)
		if err := cmp.Or(err, equal("round", buf[0], round)); err != nil {
			return err
		}
	}
	return nil
}

// counts contains the element counts of collectives: small counts, and one that is large enough for
// the algorithms for long messages.
var counts = []int{0, 1, 7, 3000}

// movements checks the collectives that move data. For long vectors it checks only the middle rank
// as root.
func movements(w *mpj.World) error {
	for _, count := range counts {
		for root := range w.Size() {
			if count > 100 && root != w.Size()/2 {
				continue
			}
			err := cmp.Or(moved[int](w.Comm, count, root), moved[uint8](w.Comm, count, root), moved[float32](w.Comm, count, root))
			if err != nil {
				return fmt.Errorf("%d elements, root %d: %w", count, root, err)
			}
		}
	}
	return cmp.Or(
		moved[int8](w.Comm, 5, 0), moved[int16](w.Comm, 5, 0), moved[int32](w.Comm, 5, 0), moved[int64](w.Comm, 5, 0), moved[uint](w.Comm, 5, 0),
		moved[uint16](w.Comm, 5, 0), moved[uint32](w.Comm, 5, 0), moved[uint64](w.Comm, 5, 0), moved[float64](w.Comm, 5, 0),
	)
}

// seq returns the contribution of rank, which is different for every rank and position if T has
// enough values.
func seq[T mpj.Ordered](rank, count int) []T { return numbers[T](rank%16*7, count) }

// all returns the contributions of all ranks, one after the other.
func all[T mpj.Ordered](n, count int) []T {
	var s []T
	for i := range n {
		s = append(s, seq[T](i, count)...)
	}
	return s
}

// columns returns the data that rank receives when every rank sends it its part number rank.
func columns[T mpj.Ordered](n, rank, count int) []T {
	var s []T
	for i := range n {
		s = append(s, seq[T](i, n*count)[rank*count:(rank+1)*count]...)
	}
	return s
}

func moved[T mpj.Ordered](c *mpj.Comm, count, root int) error {
	n, me := c.Size(), seq[T](c.Rank(), count)
	cast, gathered, scattered := make([]T, count), make([]T, n*count), make([]T, count)
	if c.Rank() == root {
		copy(cast, me)
	}
	err := cmp.Or(mpj.Bcast(c, cast, root), mpj.Gather(c, me, gathered, root), mpj.Scatter(c, all[T](n, count), scattered, root))
	if err != nil {
		return err
	}
	if c.Rank() == root {
		err = same("Gather", gathered, all[T](n, count))
	}
	everywhere, swapped := make([]T, n*count), make([]T, n*count)
	return cmp.Or(err, mpj.Allgather(c, me, everywhere), mpj.Alltoall(c, seq[T](c.Rank(), n*count), swapped),
		same("Bcast", cast, seq[T](root, count)), same("Scatter", scattered, me), same("Allgather", everywhere, all[T](n, count)),
		same("Alltoall", swapped, columns[T](n, c.Rank(), count)))
}

// inPlace tests MPI_IN_PLACE, which is a nil buffer here.
func inPlace(w *mpj.World) error {
	c, n, rank := w.Comm, w.Size(), w.Rank()
	for _, count := range counts {
		for _, root := range []int{0, n - 1} {
			me, everywhere := seq[int32](rank, count), make([]int32, n*count)
			copy(everywhere[rank*count:], me)
			var err error
			if rank == root {
				gathered := append([]int32{}, everywhere...)
				err = cmp.Or(mpj.Gather(c, nil, gathered, root), mpj.Scatter[int32](c, gathered, nil, root), same("Gather", gathered, all[int32](n, count)))
			} else {
				scattered := make([]int32, count)
				err = cmp.Or(mpj.Gather(c, me, nil, root), mpj.Scatter(c, nil, scattered, root), same("Scatter", scattered, me))
			}
			swapped := seq[int32](rank, n*count)
			err = cmp.Or(err, mpj.Allgather(c, nil, everywhere), mpj.Alltoall(c, nil, swapped),
				same("Allgather", everywhere, all[int32](n, count)), same("Alltoall", swapped, columns[int32](n, rank, count)))
			if err != nil {
				return fmt.Errorf("%d elements, root %d: %w", count, root, err)
			}
		}
	}
	return nil
}

// sideBySide starts a collective on each of two communicators, in opposite order at odd and even
// ranks (6.13).
func sideBySide(w *mpj.World) error {
	a, err1 := w.Dup()
	b, err2 := w.Dup()
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	if w.Rank()%2 == 1 {
		a, b = b, a
	}
	sums := [2][]int{make([]int, 1), make([]int, 1)}
	r1, err1 := mpj.Iallreduce(a, []int{w.Rank()}, sums[0], mpj.Sum)
	r2, err2 := mpj.Iallreduce(b, []int{w.Rank()}, sums[1], mpj.Sum)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	_, err := mpj.Waitall(r1, r2)
	want := w.Size() * (w.Size() - 1) / 2
	return cmp.Or(err, same("sums", []int{sums[0][0], sums[1][0]}, []int{want, want}), a.Free(), b.Free())
}

// apart keeps wildcard receives posted while collectives run.
func apart(w *mpj.World) error {
	buf := make([]int, 1)
	r, err := mpj.Irecv(w.Comm, buf, mpj.AnySource, mpj.AnyTag)
	if err != nil {
		return err
	}
	if err := cmp.Or(moved[int](w.Comm, 3, 0), mpj.Barrier(w.Comm), mpj.Send(w.Comm, []int{w.Rank()}, right(w.Comm), 1)); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, equal("source", s.Source, left(w.Comm)), equal("message", buf[0], left(w.Comm)))
}
