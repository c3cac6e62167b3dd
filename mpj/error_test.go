package mpj

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWrongArgumentsAreNamed checks that every rank rejects invalid arguments before it sends a
// message, with an error that names the call and the argument.
func TestWrongArgumentsAreNamed(t *testing.T) {
	one, two, three := make([]int, 1), make([]int, 2), make([]int, 3)
	counts := []int{1, 1}
	cases := []struct {
		call  func(*Comm) error
		class Class
		says  string
	}{
		{func(c *Comm) error { return Send(c, one, 2, 0) }, ErrRank, "invalid rank: dest 2"},
		{func(c *Comm) error { return Send(c, one, -1, 0) }, ErrRank, "dest -1"},
		{func(c *Comm) error { return Send(c, one, 1, -1) }, ErrTag, "tag -1"},
		{func(c *Comm) error { return Send(c, one, 1, MaxTag+1) }, ErrTag, "tag 2147483648"},
		{func(c *Comm) error { _, err := Recv(c, one, 2, 0); return err }, ErrRank, "mpj.Recv at rank "},
		{func(c *Comm) error { _, err := Recv(c, one, 0, -2); return err }, ErrTag, "tag -2"},
		{func(c *Comm) error { _, err := Probe(c, -4, 0); return err }, ErrRank, "Probe"},
		{func(c *Comm) error { _, _, err := Iprobe(c, 0, -4); return err }, ErrTag, "Iprobe"},
		{func(c *Comm) error { _, err := Isend(c, one, 9, 0); return err }, ErrRank, "Isend"},
		{func(c *Comm) error { _, err := Irecv(c, one, 9, 0); return err }, ErrRank, "Irecv"},
		{func(c *Comm) error { _, err := Sendrecv(c, one, 9, 0, two, 0, 0); return err }, ErrRank, "Sendrecv"},
		{func(c *Comm) error { return SendValue(c, 1, 2, 0) }, ErrRank, "SendValue"},
		{func(c *Comm) error { return SendValue(c, make(chan int), 1, 0) }, ErrArg, "SendValue"},
		{func(c *Comm) error { return Bcast(c, one, 2) }, ErrRoot, "mpj.Bcast at rank "},
		{func(c *Comm) error { return Reduce(c, one, two, Sum, 9) }, ErrRoot, "Reduce"},
		{func(c *Comm) error { return Allreduce(c, one, two, Sum) }, ErrBuffer, "send has 1 elements and recv 2"},
		{func(c *Comm) error { return Scan(c, one, two, Sum) }, ErrBuffer, "Scan"},
		{func(c *Comm) error { return Allgather(c, one, three) }, ErrBuffer, "Allgather"},
		{func(c *Comm) error { return Alltoall(c, three, three) }, ErrBuffer, "Alltoall"},
		{func(c *Comm) error { return Alltoall(c, two, two) }, ErrBuffer, "send and recv are the same"},
		{func(c *Comm) error { return Allreduce(c, one, one, nil) }, ErrOp, "mpj.Allreduce at rank "},
		{func(c *Comm) error { return Reduce(c, one, one, nil, 0) }, ErrOp, "Reduce"},
		{func(c *Comm) error { _, err := Iscan(c, one, one, nil); return err }, ErrOp, "Iscan"},
		{func(c *Comm) error { return ReduceScatter(c, two, one, counts, nil) }, ErrOp, "ReduceScatter"},
		{func(c *Comm) error { return ReduceScatterBlock(c, two, one, nil) }, ErrOp, "ReduceScatterBlock"},
		{func(*Comm) error { return ReduceLocal(one, one, nil) }, ErrOp, "ReduceLocal"},
		{func(c *Comm) error { return Allgatherv(c, one, two, one, nil) }, ErrCount, "1 counts"},
		{func(c *Comm) error { return Allgatherv(c, one, two, counts, []int{0, 2}) }, ErrCount, "block of rank 1 has 1 at offset 2"},
		{func(c *Comm) error { return Allgatherv(c, one, two, []int{1, -1}, nil) }, ErrCount, "-1"},
		{func(c *Comm) error { return Allgatherv(c, two, two, counts, nil) }, ErrBuffer, "send has 2"},
		{func(c *Comm) error { return Alltoallv(c, two, counts, nil, one, counts, nil) }, ErrCount, "recv has 1"},
	}
	err := RunLocal(context.Background(), 2, func(w *World) error {
		for _, c := range cases {
			err := c.call(w.Comm)
			if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q that contains %q", err, c.class, c.says)
			}
		}
		return Barrier(w.Comm) // the world still works
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTruncatedMessageIsConsumed(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		if w.Rank() == 0 {
			return first(Send(w.Comm, []int{1, 2, 3}, 1, 0), Send(w.Comm, []int{4}, 1, 0))
		}
		buf := make([]int, 2)
		s, err := Recv(w.Comm, buf, 0, 0)
		if !errors.Is(err, ErrTruncate) || Count[int](s) != 3 {
			t.Errorf("got %v, %v; want ErrTruncate of 3 elements", s, err)
		}
		s, err = Recv(w.Comm, buf, 0, 0)
		if err != nil || buf[0] != 4 {
			t.Errorf("after the truncated message: got %v, %v, %v", s, buf, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMismatchedCollectiveIsAnError(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		return Bcast(w.Comm, make([]int, 2-w.Rank()), 0)
	})
	if !errors.Is(err, ErrTruncate) {
		t.Errorf("longer buffer at the root: got %v", err)
	}
	err = RunLocal(context.Background(), 2, func(w *World) error {
		return Bcast(w.Comm, make([]int, 1+w.Rank()), 0)
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0 sent 8 bytes where rank 1 expects 16") {
		t.Errorf("shorter buffer at the root: got %v", err)
	}
}

func TestAbortEndsAllRanks(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(w *World) error {
		if w.Rank() == 2 {
			w.Abort(5, "no convergence")
		}
		return Barrier(w.Comm)
	})
	if err == nil || !strings.Contains(err.Error(), "rank 2 aborted with status 5: no convergence") {
		t.Errorf("RunLocal returned %v, want the abort of rank 2", err)
	}
}

// TestErrorOfOneRankHasItsClassAtTheOthers checks that a call which another rank's error ends, and a collective,
// report that error as it is, although a context had caused it.
func TestErrorOfOneRankHasItsClassAtTheOthers(t *testing.T) {
	for name, call := range map[string]func(c *Comm) error{
		"Recv":    func(c *Comm) error { _, err := Recv(c, make([]int, 1), 0, 0); return err },
		"Barrier": Barrier,
	} {
		handled := 0
		var got error
		RunLocal(t.Context(), 2, func(w *World) error {
			if w.Rank() == 0 {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				defer cancel()
				_, err := ProbeContext(ctx, w.Comm, 1, 0)
				return err
			}
			w.SetErrhandler(func(_ *Comm, e *Error) error { handled++; return e })
			got = call(w.Comm)
			return got
		})
		var e *Error
		if !errors.As(got, &e) || e.Class != ErrContext || e.Op != "ProbeContext" || e.Rank != 0 || handled > 0 {
			t.Errorf("%s: got %v, and %d calls of the handler, want the error of rank 0", name, got, handled)
		}
	}
}

func TestNilPeerOfAnIntercommunicatorIsReportedByTheCommunicator(t *testing.T) {
	err := RunLocal(t.Context(), 1, func(w *World) error {
		handled := 0
		w.SetErrhandler(func(_ *Comm, e *Error) error { handled++; return e })
		_, err := w.IntercommCreate(0, nil, 0, 0)
		var e *Error
		if !errors.As(err, &e) || e.Class != ErrComm || e.Rank != 0 || handled != 1 {
			t.Errorf("got %v, and %d calls of the handler, want one with an error of rank 0", err, handled)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestErrorOfOneRankEndsTheOthers(t *testing.T) {
	mine := errors.New("my error")
	err := RunLocal(context.Background(), 3, func(w *World) error {
		if w.Rank() == 1 {
			return mine
		}
		_, err := Recv(w.Comm, make([]int, 1), AnySource, 0)
		return err
	})
	if !errors.Is(err, mine) {
		t.Errorf("RunLocal returned %v, want the program's error", err)
	}
}

func TestRequestsReportOnce(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		other := 1 - w.Rank()
		bufs := [3][]int{make([]int, 1), make([]int, 1), make([]int, 1)}
		var rs []*Request
		for tag, buf := range bufs {
			r, err := Irecv(w.Comm, buf, other, tag)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		for tag := range bufs {
			r, err := Isend(w.Comm, []int{10 * tag}, other, tag)
			if err != nil {
				return err
			}
			rs = append(rs, r, nil)
		}
		seen := make(map[int]bool)
		for {
			indices, _, err := Waitsome(rs...)
			if err != nil {
				return err
			}
			if indices == nil {
				break
			}
			for _, i := range indices {
				if seen[i] {
					t.Errorf("request %d was reported twice", i)
				}
				seen[i] = true
			}
		}
		i, _, _ := Waitany(rs...)
		_, _, some, _ := Testany(rs...)
		_, all, err := Testall(rs...)
		if len(seen) != 6 || i != Undefined || !some || !all || bufs[2][0] != 20 {
			t.Errorf("Waitsome reported %v, then Waitany %d, Testany %v, Testall %v, %v; received %v", seen, i, some, all, err, bufs)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestValuesOfAnyType(t *testing.T) {
	type thing struct {
		Name  string
		Parts map[string][]int
	}
	err := RunLocal(context.Background(), 3, func(w *World) error {
		sent := thing{"it", map[string][]int{"a": {1, 2}}}
		if w.Rank() == 1 {
			if err := SendValue(w.Comm, sent, 0, 3); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			got, s, err := RecvValue[thing](w.Comm, AnySource, AnyTag)
			if err != nil || got.Parts["a"][1] != 2 || s.Source != 1 || s.Tag != 3 {
				t.Errorf("RecvValue returned %v, %v, %v", got, s, err)
			}
		}
		got, err := BcastValue(w.Comm, thing{Name: string(rune('a' + w.Rank()))}, 2)
		if err != nil || got.Name != "c" {
			t.Errorf("rank %d: got %v, %v; want the value of rank 2", w.Rank(), got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWtimeAdvances(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(w *World) error {
		before, start := w.Wtime(), time.Now()
		for time.Since(start) < time.Millisecond {
		}
		if after := w.Wtime(); after-before < 0.001 {
			t.Errorf("Wtime advanced from %v to %v in a millisecond", before, after)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFinalizeNamesUnmatchedMessages checks that Finalize reports the messages that the program has
// not received.
func TestFinalizeNamesUnmatchedMessages(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		d, err := w.Dup()
		if err != nil {
			return err
		}
		d.SetName("forgotten")
		if w.Rank() == 0 {
			err = first(Send(w.Comm, []int32{1}, 1, 7), Send(d, []int{1, 2}, 1, 8))
		}
		if err := first(err, Barrier(d)); err != nil {
			return err
		}
		err = w.Finalize()
		if w.Rank() == 0 {
			return err
		}
		for _, says := range []string{"mpj.Finalize at rank 1: ", "2 messages: ", `4 bytes from rank 0 with tag 7 in communicator "world"`, `16 bytes from rank 0 with tag 8 in communicator "forgotten"`} {
			if err := isClass(err, ErrPending); err != nil || !strings.Contains(w.err.Error(), says) {
				t.Errorf("got %v, want an error that contains %q", w.err, says)
			}
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "tag 7") { // from the second Finalize, in RunLocal
		t.Errorf("RunLocal returned %v, want an error that names tag 7", err)
	}
}
