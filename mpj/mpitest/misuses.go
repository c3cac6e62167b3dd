package mpitest

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A misuse that a rank can detect by itself is an error of the call, which then sends no messages
// (MPI 4.0, 9.3 and 9.4).
var misuses = []Test{
	{"wrong arguments of messages are errors", 1, true, wrongMessages},
	{"wrong arguments of collectives are errors", 1, true, wrongCollectives},
	{"calls on no communicator, or a freed communicator, are errors", 1, true, wrongComms},
}

// refused checks that every call failed with its class, in an error that names this rank or no rank.
func refused(w *mpj.World, calls []misuse) error {
	for _, m := range calls {
		var e *mpj.Error
		if err := fails(m.what, m.err, m.class); err != nil || !errors.As(m.err, &e) {
			return cmp.Or(err, fmt.Errorf("%s: no *mpj.Error: %w", m.what, m.err))
		}
		if e.Rank != w.Rank() && e.Rank != mpj.Undefined {
			return fmt.Errorf("%s: the error names rank %d", m.what, e.Rank)
		}
	}
	return mpj.Barrier(w.Comm) // the communicator still works
}

type misuse struct {
	what  string
	err   error
	class mpj.Class
}

func wrongMessages(w *mpj.World) error {
	c, n, one := w.Comm, w.Size(), []int{1}
	beyond := int64(mpj.MaxTag) + 1 // negative where an int has 32 bits
	recv := func(source, tag int) error { _, err := mpj.Recv(c, one, source, tag); return err }
	probe := func(source, tag int) error { _, err := mpj.Probe(c, source, tag); return err }
	isend := func(dest, tag int) error { _, err := mpj.Isend(c, one, dest, tag); return err }
	irecv := func(source, tag int) error { _, err := mpj.Irecv(c, one, source, tag); return err }
	return refused(w, []misuse{
		{"Send beyond the last rank", mpj.Send(c, one, n, 0), mpj.ErrRank},
		{"Ssend to a negative rank", mpj.Ssend(c, one, -7, 0), mpj.ErrRank},
		{"Send to AnySource", mpj.Send(c, one, mpj.AnySource, 0), mpj.ErrRank},
		{"Send with a negative tag", mpj.Send(c, one, 0, -5), mpj.ErrTag},
		{"Send with AnyTag", mpj.Send(c, one, 0, mpj.AnyTag), mpj.ErrTag},
		{"Send with a tag too large", mpj.Send(c, one, 0, int(beyond)), mpj.ErrTag},
		{"Bsend without a buffer", mpj.Bsend(c, one, 0, 0), mpj.ErrBuffer},
		{"Recv beyond the last rank", recv(n, 0), mpj.ErrRank},
		{"Recv with a negative tag", recv(0, -5), mpj.ErrTag},
		{"Probe beyond the last rank", probe(n, 0), mpj.ErrRank},
		{"Isend beyond the last rank", isend(n, 0), mpj.ErrRank},
		{"Irecv with a negative tag", irecv(0, -5), mpj.ErrTag},
		{"SendValue of a value that cannot be encoded", mpj.SendValue(c, make(chan int), 0, 0), mpj.ErrArg},
	})
}

func wrongCollectives(w *mpj.World) error {
	c, n := w.Comm, w.Size()
	one, more := []int{1}, make([]int, n+1)
	counts, minus := make([]int, n), make([]int, n)
	counts[0], minus[n-1] = n+2, -1
	_, started := mpj.Ibcast(c, one, n)
	return refused(w, []misuse{
		{"Bcast with a root beyond the last rank", mpj.Bcast(c, one, n), mpj.ErrRoot},
		{"Reduce with a negative root", mpj.Reduce(c, one, one, mpj.Sum, -1), mpj.ErrRoot},
		{"Gather with a root beyond the last rank", mpj.Gather(c, one, more, n), mpj.ErrRoot},
		{"Ibcast with a root beyond the last rank", started, mpj.ErrRoot},
		{"Allreduce of unequal lengths", mpj.Allreduce(c, one, make([]int, 2), mpj.Sum), mpj.ErrBuffer},
		{"Scan of unequal lengths", mpj.Scan(c, one, make([]int, 2), mpj.Sum), mpj.ErrBuffer},
		{"Allgather of unequal lengths", mpj.Allgather(c, one, more), mpj.ErrBuffer},
		{"Allgatherv with too few counts", mpj.Allgatherv(c, one, more, counts[1:], nil), mpj.ErrCount},
		{"Allgatherv with a negative count", mpj.Allgatherv(c, one, more, minus, nil), mpj.ErrCount},
		{"Allgatherv beyond the buffer", mpj.Allgatherv(c, one, more, counts, nil), mpj.ErrCount},
		{"ReduceScatter with a negative count", mpj.ReduceScatter(c, more, one, minus, mpj.Sum), mpj.ErrCount},
	})
}

func wrongComms(w *mpj.World) error {
	d, err := w.Dup()
	if err := cmp.Or(err, d.Free()); err != nil {
		return err
	}
	var none *mpj.Comm
	_, split := d.Split(0, 0)
	_, dup := none.Dup()
	return refused(w, []misuse{
		{"Send on a freed communicator", mpj.Send(d, []int{1}, 0, 0), mpj.ErrComm},
		{"Barrier on a freed communicator", mpj.Barrier(d), mpj.ErrComm},
		{"Split of a freed communicator", split, mpj.ErrComm},
		{"Free again", d.Free(), mpj.ErrComm},
		{"Dup of no communicator", dup, mpj.ErrComm},
		{"Free of the world", w.Free(), mpj.ErrComm},
		{"Merge of an ordinary communicator", func() error { _, err := w.Merge(true); return err }(), mpj.ErrComm},
	})
}
