package mpj

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// several runs program in k goroutines at once and returns the first error.
func several(k int, program func(i int) error) error {
	errs := make([]error, k)
	var all sync.WaitGroup
	for i := range k {
		all.Go(func() { errs[i] = program(i) })
	}
	all.Wait()
	return first(errs...)
}

// TestGoroutinesShareACommunicator makes goroutines share a communicator, each with its own tag.
func TestGoroutinesShareACommunicator(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(w *World) error {
		right, left := (w.Rank()+1)%3, (w.Rank()+2)%3
		return several(6, func(tag int) error {
			buf := make([]int, 1+500*tag)
			for round := range 40 {
				send := make([]int, len(buf))
				send[len(send)-1] = 1000*tag + round
				s, err := Sendrecv(w.Comm, send, right, tag, buf, left, tag)
				if err := first(err, want("message", []int{buf[len(buf)-1], s.Source}, []int{1000*tag + round, left})); err != nil {
					return fmt.Errorf("message with tag %d in round %d: %w", tag, round, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TestGoroutinesWithDifferentCommunicators makes goroutines use wildcards and collectives and create
// communicators at the same time, each on its own communicator.
func TestGoroutinesWithDifferentCommunicators(t *testing.T) {
	err := RunLocal(context.Background(), 4, func(w *World) error {
		own := make([]*Comm, 4)
		for i := range own {
			var err error
			if own[i], err = w.Dup(); err != nil {
				return err
			}
		}
		return several(len(own), func(i int) error {
			for range 10 {
				if err := works(own[i], 0, 1, 2, 3); err != nil {
					return err
				}
				half, err := own[i].Split(w.Rank()%2, 0)
				if err != nil {
					return err
				}
				if err := first(works(half, numbers(w.Rank()%2, 2, 4)...), half.Free()); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBlockedGoroutinesDoNotBlockOthers checks that a waiting collective does not block other
// goroutines. The collective can complete only if the other goroutines communicate.
func TestBlockedGoroutinesDoNotBlockOthers(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		d, err := w.Dup()
		if err != nil {
			return err
		}
		received := make(chan struct{})
		return several(2, func(i int) error {
			if i == 0 {
				if w.Rank() == 1 {
					<-received
				}
				return Barrier(d)
			}
			defer close(received)
			_, err := Sendrecv(w.Comm, []int{1}, 1-w.Rank(), 0, make([]int, 1), 1-w.Rank(), 0)
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
}
