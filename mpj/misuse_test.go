package mpj

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// misuses contains misuses that only several ranks together can detect. Each results in an error of
// a rank, which names the call, the ranks and their arguments. The error is the same whether it
// comes from the failed rank, from a rank that waited for the failed rank, or from Finalize. Package
// mpitest contains the misuses that one rank detects by itself.
var misuses = []struct {
	name  string
	ranks int
	run   func(*World) error
	class Class
	says  []string
}{
	{"collectives in different order", 2, func(w *World) error {
		if w.Rank() == 0 {
			return first(Bcast(w.Comm, []int{1}, 0), Barrier(w.Comm))
		}
		return first(Barrier(w.Comm), Bcast(w.Comm, []int{1}, 0))
	}, ErrComm, []string{"at rank 1", `communicator "world"`, "rank 0 calls bcast with root 0 where rank 1 calls barrier"}},
	{"non-blocking collectives in different order", 2, func(w *World) error {
		sum := make([]int, 1)
		start := []func() (*Request, error){
			func() (*Request, error) { return Ibarrier(w.Comm) },
			func() (*Request, error) { return Iallreduce(w.Comm, []int{1}, sum, Sum) },
		}
		r1, err1 := start[w.Rank()]()
		r2, err2 := start[1-w.Rank()]()
		_, err := Waitall(r1, r2)
		return first(err1, err2, err)
	}, ErrComm, []string{"calls barrier", "calls allreduce"}},
	{"different roots", 4, func(w *World) error { return Bcast(w.Comm, []int{1}, w.Rank()/3*2) },
		ErrComm, []string{"at rank 3", `communicator "world"`, "rank 2 calls bcast with root 0 where rank 3 calls bcast with root 2"}},
	{"a reduction to a root and to all", 4, func(w *World) error {
		if w.Rank() == 0 {
			return Allreduce(w.Comm, []int{1}, make([]int, 1), Sum)
		}
		return Reduce(w.Comm, []int{1}, make([]int, 1), Sum, 0)
	}, ErrComm, []string{"calls allreduce", "calls reduce with root 0"}},
	{"different lengths", 2, func(w *World) error {
		buf := make([]int, 2+w.Rank())
		return Allreduce(w.Comm, buf, make([]int, len(buf)), Sum)
	}, "", []string{"at rank ", "bytes where rank"}},
	{"counts that do not fit", 2, func(w *World) error {
		counts := []int{1, 1 + w.Rank()}
		return Allgatherv(w.Comm, make([]int, counts[w.Rank()]), make([]int, 3), counts, nil)
	}, "", []string{"at rank 0", "rank 1 sent 16 bytes where rank 0 expects 8"}},
	{"neighbours with different lengths", 2, func(w *World) error {
		line, err := w.CartCreate([]int{2}, []bool{false}, false)
		if err != nil {
			return err
		}
		send := make([]int, 1+w.Rank())
		if err := NeighborAllgather(line, send, make([]int, 2*len(send))); w.Rank() == 1 {
			return err
		}
		return nil
	}, ErrCount, []string{"mpj.NeighborAllgather at rank 1", "rank 0 sent 8 bytes where rank 1 expects 16"}},
	{"a message that is never received", 2, func(w *World) error {
		if w.Rank() == 0 {
			return Send(w.Comm, []int{1}, 1, 8)
		}
		_, err := Probe(w.Comm, 0, 8)
		return first(err, w.Finalize())
	}, ErrPending, []string{"mpj.Finalize at rank 1", "8 bytes from rank 0 with tag 8"}},
	{"a message that is never received in a freed communicator", 2, func(w *World) error {
		d, err := w.Dup()
		if err == nil && w.Rank() == 0 {
			err = Send(d, []int{1}, 1, 8)
		}
		if err := first(err, Barrier(w.Comm), d.Free()); err != nil || w.Rank() == 0 {
			return err
		}
		return w.Finalize()
	}, ErrPending, []string{"mpj.Finalize at rank 1", "8 bytes from rank 0 of the world with tag 8 in a communicator that was freed"}},
	{"communicators in different order", 2, func(w *World) error {
		if w.Rank() == 0 {
			_, err := w.Dup()
			return err
		}
		_, err := w.Split(0, 0)
		return err
	}, "", []string{"different order"}},
	{"a call after Finalize", 1, func(w *World) error {
		return first(w.Finalize(), Barrier(w.Comm), Send(w.Comm, []int{1}, 0, 0))
	}, ErrFinalized, []string{"mpj.Send at rank 0"}},
	{"a request of a world that has ended", 1, func(w *World) error {
		r, err := Irecv(w.Comm, make([]int, 1), 0, 0)
		if err := first(err, w.Finalize()); err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}, ErrFinalized, []string{"mpj.Irecv at rank 0"}},
}

// TestRequestsOfAnotherWorldAreRefused uses requests of a different rank, which is possible within
// one process.
func TestRequestsOfAnotherWorldAreRefused(t *testing.T) {
	passed := make(chan *Request, 1)
	err := RunLocal(context.Background(), 2, func(w *World) error {
		own, err := Irecv(w.Comm, make([]int, 1), 1-w.Rank(), 0)
		if err != nil || w.Rank() == 0 {
			passed <- own
			return first(err, Barrier(w.Comm))
		}
		theirs := <-passed
		calls := map[string]func() error{
			"Waitany":  func() error { _, _, err := Waitany(own, nil, theirs); return err },
			"Waitsome": func() error { _, _, err := Waitsome(own, nil, theirs); return err },
			"Testany":  func() error { _, _, _, err := Testany(own, nil, theirs); return err },
			"Testsome": func() error { _, _, err := Testsome(own, nil, theirs); return err },
			"Testall":  func() error { _, _, err := Testall(own, nil, theirs); return err },
		}
		for name, call := range calls {
			err := call()
			if !errors.Is(err, ErrRequest) || err.Error() != "mpj."+name+" at rank 1: invalid request: request 2 belongs to rank 0 of another world" {
				t.Errorf("%s with a request of another world returned %v", name, err)
			}
		}
		return first(own.Cancel(), theirs.Cancel(), Barrier(w.Comm))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMisuseNamesTheCall(t *testing.T) {
	for _, c := range misuses {
		for _, replicas := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, r=%d", c.name, replicas), func(t *testing.T) {
				err := runIn(localworld.New(t.Context(), localworld.Config{Ranks: c.ranks, Replicas: replicas}), c.run)
				if err == nil || c.class != "" && !errors.Is(err, c.class) {
					t.Errorf("got %v, want class %q", err, c.class)
					return
				}
				for _, says := range c.says {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("got %q, which does not contain %q", err, says)
					}
				}
				if strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
					t.Errorf("got %q, which is not valid text", err)
				}
			})
		}
	}
}

// TestEveryRankReportsTheSameFailure checks that all ranks that get the error of a failed
// collective, in any call, report the same failure.
func TestEveryRankReportsTheSameFailure(t *testing.T) {
	const says = "rank 2 calls bcast with root 0 where rank 3 calls bcast with root 2"
	for _, replicas := range []int{1, 2} {
		said, err := outcomes(localworld.Config{Ranks: 4, Replicas: replicas}, func(w *World) error {
			failed := Bcast(w.Comm, []int{1}, w.Rank()/3*2)
			if w.Rank() == 3 { // the failure notice is sent before this message
				return first(Send(w.Comm, []int{1}, 0, 0), Send(w.Comm, []int{1}, 2, 0), failed)
			}
			if w.Rank() == 1 {
				return nil
			}
			if _, err := Recv(w.Comm, make([]int, 1), 3, 0); err != nil {
				return err
			}
			if w.Rank() == 0 {
				return Barrier(w.Comm)
			}
			if err := w.Finalize(); err != nil { // ends the job
				return err
			}
			return failed
		})
		if err != nil {
			t.Fatal(err)
		}
		for rank, err := range said {
			if rank != 1 && (!strings.Contains(fmt.Sprint(err), "at rank 3") || !strings.Contains(fmt.Sprint(err), says)) {
				t.Errorf("r=%d, rank %d: got %v, want an error that contains %q", replicas, rank, err, says)
			}
			if rank == 3 && !errors.Is(err, ErrComm) {
				t.Errorf("r=%d: got %v, want class %q", replicas, err, ErrComm)
			}
		}
	}
}
