package mpj

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// differing contains programs in which the calls of three ranks differ, and the text of the error.
var differing = []struct {
	name string
	call func(*World) error
	says string
}{
	{"collectives", func(w *World) error {
		if w.Rank() == 2 {
			return Barrier(w.Comm)
		}
		return Bcast(w.Comm, make([]int, 1), 0)
	}, "mpj.Bcast at rank 0: invalid communicator: in communicator \"world\" rank 0 calls Bcast(1 int, root 0) at check_test.go:"},
	{"roots", func(w *World) error { return Bcast(w.Comm, make([]int, 1), w.Rank()/2) },
		"mpj.Bcast at rank 0: invalid root: in communicator \"world\" rank 0 calls Bcast(1 int, root 0) at check_test.go:"},
	{"long names", func(w *World) error {
		if w.Rank() == 0 {
			_, err := w.DistGraphCreateAdjacent(nil, nil, nil, nil, false)
			return err
		}
		_, err := w.DistGraphCreate(nil, nil, nil, nil, false)
		return err
	}, "rank 1 calls DistGraphCreate("},
	{"a root out of range", func(w *World) error { return Bcast(w.Comm, make([]int, 1), 7*(w.Rank()/2)) },
		"rank 2 calls Bcast(1 int, root 7)"},
	{"communicators", func(w *World) error {
		if w.Rank() == 0 {
			_, err := w.Dup()
			return err
		}
		_, err := w.Split(0, 0)
		return err
	}, "mpj.Dup at rank 0: invalid communicator: in communicator \"world\" rank 0 calls Dup() at check_test.go:"},
	{"nonblocking", func(w *World) error {
		g, err := w.CartCreate([]int{3}, []bool{true}, false)
		if err != nil {
			return err
		}
		start := IneighborAlltoall[int]
		if w.Rank() == 1 {
			start = IneighborAllgather[int]
		}
		r, err := start(g, make([]int, 2*(1-w.Rank()%2)+w.Rank()%2), make([]int, 2))
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}, "mpj.IneighborAlltoall at rank 0: invalid communicator: in communicator \"\" rank 0 calls IneighborAlltoall(int, sends [1 1], receives [1 1]) at check_test.go:"},
}

// TestCheckNamesDifferentCalls checks that with P2PMPI_CHECK, all ranks get an error if their calls
// differ, and no rank hangs.
func TestCheckNamesDifferentCalls(t *testing.T) {
	t.Setenv(checkVariable, "1")
	for _, c := range differing {
		t.Run(c.name, func(t *testing.T) {
			err := RunLocal(context.Background(), 3, func(w *World) error {
				err := c.call(w)
				if err == nil {
					t.Errorf("rank %d returned no error", w.Rank())
				}
				if w.Rank() == 0 && !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want %s", err, c.says)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCheckAcceptsCorrectPrograms checks that a correct program runs as without checks.
func TestCheckAcceptsCorrectPrograms(t *testing.T) {
	t.Setenv(checkVariable, "1")
	inEveryShape(t, func(w *World) error {
		g, err := w.CartCreate([]int{w.Size()}, []bool{true}, false)
		if err != nil {
			return err
		}
		recv := make([]int, 2)
		r, err := IneighborAllgather(g, []int{1}, recv)
		if err != nil {
			return err
		}
		err = works(g, numbers(0, 1, w.Size())...)
		_, waited := r.Wait()
		return first(err, waited, want("received", recv, []int{1, 1}))
	})
}

// TestCheckNamesForgottenRequests checks that requests that were not waited for are reported with
// the file and line of their start, and that freed requests are not reported.
func TestCheckNamesForgottenRequests(t *testing.T) {
	t.Setenv(checkVariable, "1")
	err := RunLocal(context.Background(), 1, func(w *World) error {
		forgotten, err1 := Isend(w.Comm, []int{1}, 0, 7)
		waited, err2 := Irecv(w.Comm, make([]int, 1), 0, 7)
		freed, err3 := Ibarrier(w.Comm)
		_, err4 := waited.Wait()
		freed.Free()
		if err := first(err1, err2, err3, err4); err != nil || forgotten == nil {
			return err
		}
		return w.Finalize()
	})
	const want = "mpj.Finalize at rank 0: never received or waited for: 1 requests: Isend(dest 0, tag 7, 8 bytes) of world at check_test.go:"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCheckNamesMessagesToAFinalizedRank checks that a rank that finalizes reports messages that it
// has not received.
func TestCheckNamesMessagesToAFinalizedRank(t *testing.T) {
	t.Setenv(checkVariable, "1")
	for _, length := range []int{1, 1 << 20} {
		var finalizes sync.WaitGroup
		finalizes.Add(1)
		err := RunLocal(context.Background(), 2, func(w *World) error {
			if w.Rank() == 1 {
				finalizes.Done()
				return w.Finalize()
			}
			finalizes.Wait()
			return Send(w.Comm, make([]byte, length), 1, 3)
		})
		want := fmt.Sprintf("mpj.Finalize at rank 1: never received or waited for: 1 messages: %d bytes from rank 0 with tag 3", length)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
