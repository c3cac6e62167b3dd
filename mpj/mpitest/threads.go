package mpitest

import (
	"cmp"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Several goroutines at once, as MPI_THREAD_MULTIPLE allows (MPI 4.0, 11.6). With replicas, each
// goroutine has its own communicator.
var threads = []Test{
	{"goroutines share a communicator by tags", 1, false, threadsByTag},
	{"goroutines with different communicators run independently", 1, true, threadsByComm},
	{"goroutines share matched probes", 2, false, threadsMprobe},
}

// together runs f in k goroutines and returns the first error.
func together(k int, f func(i int) error) error {
	errs := make([]error, k)
	var running sync.WaitGroup
	for i := range k {
		running.Go(func() { errs[i] = f(i) })
	}
	running.Wait()
	return cmp.Or(errs...)
}

func threadsByTag(w *mpj.World) error {
	return together(4, func(tag int) error {
		for round := range 20 {
			got := make([]int, 1+400*tag)
			s, err := mpj.Sendrecv(w.Comm, numbers[int](round+tag, len(got)), right(w.Comm), tag, got, left(w.Comm), tag)
			if err := cmp.Or(err, equal("tag", s.Tag, tag), same("message", got, numbers[int](round+tag, len(got)))); err != nil {
				return err
			}
		}
		return nil
	})
}

func threadsByComm(w *mpj.World) error {
	var own [3]*mpj.Comm
	for i := range own {
		var err error
		if own[i], err = w.Dup(); err != nil {
			return err
		}
	}
	return together(len(own), func(i int) error {
		c := own[i]
		for round := range 5 {
			half, err := c.Split(c.Rank()%2, 0)
			if err != nil {
				return err
			}
			sum, message := make([]int, 1), make([]int, 1)
			err = cmp.Or(mpj.Allreduce(half, []int{1}, sum, mpj.Sum), equal("sum", sum[0], half.Size()),
				mpj.Send(c, []int{10*i + round}, right(c), i))
			if err != nil {
				return err
			}
			_, err = mpj.Recv(c, message, left(c), mpj.AnyTag)
			if err := cmp.Or(err, equal("message", message[0], 10*i+round), half.Free()); err != nil {
				return err
			}
		}
		return c.Free()
	})
}

// threadsMprobe receives messages of different lengths in several goroutines on one communicator.
// Each goroutine must get the message that its own probe matched.
func threadsMprobe(w *mpj.World) error {
	const each = 12 // messages of each sender
	if w.Rank() > 0 {
		for i := range each {
			if err := mpj.Send(w.Comm, numbers[int](i, 1+i*i), 0, 0); err != nil {
				return err
			}
		}
		return nil
	}
	return together(3, func(int) error {
		for range each * (w.Size() - 1) / 3 {
			m, s, err := mpj.Mprobe(w.Comm, mpj.AnySource, 0)
			if err != nil {
				return err
			}
			got := make([]int, mpj.Count[int](s))
			_, err = mpj.Mrecv(m, got)
			if err := cmp.Or(err, equal("length", len(got), 1+got[0]*got[0])); err != nil {
				return err
			}
		}
		return nil
	})
}
