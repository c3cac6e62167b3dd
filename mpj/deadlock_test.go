package mpj

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// deadlocks runs a program with checks over every kind of channel and returns the errors of the
// ranks.
func deadlocks(t *testing.T, n int, config localworld.Config, program func(*World) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	config.Ranks, config.Replicas = n, 1
	var mu sync.Mutex
	errs := make([]error, n)
	err := runIn(localworld.New(ctx, config), func(w *World) error {
		err := program(w)
		mu.Lock()
		defer mu.Unlock()
		errs[w.Rank()] = err
		return nil
	})
	if ctx.Err() != nil {
		t.Fatal("the deadlock was not detected")
	}
	if err != nil && !errors.Is(err, ErrDeadlock) {
		t.Error(err)
	}
	return errs
}

// deadlocked lists programs in which no rank can proceed, and parts of the report.
var deadlocked = []struct {
	name    string
	n       int
	program func(*World) error
	says    []string
}{
	{"receives in a cycle", 3, func(w *World) error {
		_, err := Recv(w.Comm, make([]int, 1), (w.Rank()+1)%3, 5)
		return err
	}, []string{"no rank can proceed", "rank 0 waits in Recv(source 1, tag 5, world)", "rank 2 waits in Recv(source 0, tag 5, world)"}},
	{"a group that one member does not create", 2, func(w *World) error {
		if w.Rank() == 1 {
			_, err := Recv(w.Comm, make([]int, 1), 0, 5)
			return err
		}
		_, err := w.CreateGroup(w.Group(), 3)
		return err
	}, []string{"rank 0 waits in CreateGroup(2 members, tag 3) of world at deadlock_test.go", "in which it needs rank 1"}},
	{"a duplicate that one rank does not start", 2, func(w *World) error {
		if w.Rank() == 1 {
			_, err := Recv(w.Comm, make([]int, 1), 0, 5)
			return err
		}
		_, r, err := w.Idup()
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}, []string{"rank 0 waits in Idup() of world at deadlock_test.go"}},
	// The messages are longer than those that are sent at once on an open channel.
	{"long sends to each other", 2, func(w *World) error {
		return Send(w.Comm, make([]byte, 2<<20), 1-w.Rank(), 7)
	}, []string{"rank 1 waits in Send(dest 0, tag 7, 2097152 bytes, world): no receive matches"}},
	{"a tag that no rank sends", 2, func(w *World) error {
		if w.Rank() == 1 {
			return Send(w.Comm, make([]byte, 2<<20), 0, 7)
		}
		_, err := Recv(w.Comm, make([]int, 1), 1, 5)
		return err
	}, []string{"rank 0 waits in Recv(source 1, tag 5, world): the messages that have arrived have tag 7 from rank 1"}},
	{"a receive from a rank that has finalized", 3, func(w *World) error {
		if w.Rank() == 0 {
			return w.Finalize()
		}
		if w.Rank() == 2 {
			_, err := Probe(w.Comm, 1, AnyTag)
			return err
		}
		_, err := Recv(w.Comm, make([]int, 1), AnySource, AnyTag)
		return err
	}, []string{"rank 0 has finalized", "rank 1 waits in Recv(source AnySource, tag AnyTag, world)", "rank 2 waits in Probe(source 1, tag AnyTag, world)"}},
	{"a collective that one rank does not call", 2, func(w *World) error {
		if w.Rank() == 1 {
			_, err := Recv(w.Comm, make([]int, 1), 0, 0)
			return err
		}
		return Barrier(w.Comm)
	}, []string{"rank 0 waits in Barrier() of world at deadlock_test.go:", ", in which it needs rank 1"}},
	{"several requests, several goroutines", 2, func(w *World) error {
		if w.Rank() == 1 {
			return Ssend(w.Comm, make([]int, 1), 0, 9)
		}
		var group sync.WaitGroup
		errs := make([]error, 2)
		group.Go(func() {
			a, _ := Irecv(w.Comm, make([]int, 1), 1, 1)
			b, _ := Irecv(w.Comm, make([]int, 1), 1, 2)
			_, _, errs[0] = Waitany(a, b)
		})
		group.Go(func() { _, errs[1] = Recv(w.Comm, make([]int, 1), 1, 3) })
		group.Wait()
		return first(errs...)
	}, []string{"rank 0 waits in Recv(source 1, tag 1,", "rank 0 waits in Recv(source 1, tag 2,", "rank 0 waits in Recv(source 1, tag 3,", "rank 1 waits in Send(dest 0, tag 9, 8 bytes"}},
	{"nonblocking", 2, func(w *World) error {
		if w.Rank() == 1 {
			_, err := Recv(w.Comm, make([]int, 1), 0, 4)
			return err
		}
		r, err := Ibarrier(w.Comm)
		if err == nil {
			_, err = r.Wait()
		}
		return err
	}, []string{"rank 0 waits in Ibarrier() of world at deadlock_test.go:", ", in which it needs rank 1"}},
	{"alone", 1, func(w *World) error {
		_, err := Recv(w.Comm, make([]int, 1), 0, 4)
		return err
	}, []string{"no rank can proceed", "rank 0 waits in Recv(source 0, tag 4, world)"}},
}

func TestCheckReportsTheRanksOfADeadlock(t *testing.T) {
	t.Setenv(checkVariable, "1")
	for _, c := range deadlocked {
		for kind, config := range map[string]localworld.Config{"memory": {}, "sockets": {Sockets: true}, "rings": {Rings: true}} {
			t.Run(c.name+" over "+kind, func(t *testing.T) {
				t.Parallel()
				for rank, err := range deadlocks(t, c.n, config, c.program) {
					if err == nil {
						continue // has finalized
					}
					if !errors.Is(err, ErrDeadlock) {
						t.Errorf("rank %d: %v", rank, err)
					}
					for _, says := range c.says {
						if !strings.Contains(err.Error(), says) {
							t.Errorf("rank %d: %v\ndoes not contain %q", rank, err, says)
						}
					}
				}
			})
		}
	}
}
