package mpj

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

func TestPersistentRequestsRestart(t *testing.T) {
	pair := TypeOf[int]().Vector(2, 1, 2)
	inEveryShape(t, func(w *World) error {
		right, left := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		send, recv, row, gaps := make([]int, 1), make([]int, 1), make([]int, 3), make([]int, 3)
		var rs []*Request
		for _, made := range []func() (*Request, error){
			func() (*Request, error) { return RecvInit(w.Comm, recv, left, 0) },
			func() (*Request, error) { return RecvInitTyped(w.Comm, pair.At(gaps, 0, 1), left, 1) },
			func() (*Request, error) { return SendInit(w.Comm, send, right, 0) },
			func() (*Request, error) { return SendInitTyped(w.Comm, pair.At(row, 0, 1), right, 1) },
		} {
			r, err := made()
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		if i, _, err := Waitany(rs...); i != Undefined || err != nil {
			return first(err, fmt.Errorf("request %d is active before Start", i))
		}
		for round := range 10 {
			send[0], row[0], row[2] = 10*round+w.Rank(), round, w.Rank()
			if err := Startall(rs...); err != nil {
				return err
			}
			if err := rs[0].Start(); !errors.Is(err, ErrRequest) {
				return fmt.Errorf("Start of an active request: %w", err)
			}
			if _, err := Waitall(rs...); err != nil {
				return err
			}
			if err := first(want("recv", recv, []int{10*round + left}), want("gaps", gaps, []int{round, 0, left})); err != nil {
				return err
			}
		}
		rs[0].Free()
		if err := rs[0].Start(); !errors.Is(err, ErrRequest) {
			return fmt.Errorf("Start of a freed request: %w", err)
		}
		return nil
	})
}

func TestGetStatusLeavesTheRequestActive(t *testing.T) {
	inPairs(t, func(w *World) error {
		if w.Rank() == 0 {
			return Send(w.Comm, []int{4, 5}, 1, 3)
		}
		buf := make([]int, 2)
		r, err := Irecv(w.Comm, buf, 0, 3)
		if err != nil {
			return err
		}
		for done := false; !done; {
			var s Status
			if s, done, err = r.GetStatus(); err != nil || done && Count[int](s) != 2 {
				return first(err, fmt.Errorf("GetStatus returned %v", s))
			}
		}
		i, s, err := Waitany(r)
		if i != 0 || s.Tag != 3 {
			err = errors.Join(err, fmt.Errorf("Waitany: %d, %v", i, s))
		}
		return first(err, want("elements", buf, []int{4, 5}))
	})
}

// TestCancelWithdrawsAReceive checks that a cancelled receive takes no message, so that the next
// receive gets the message.
func TestCancelWithdrawsAReceive(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		if w.Rank() == 0 {
			return first(Send(w.Comm, []int{1}, 1, 0), Barrier(w.Comm), Send(w.Comm, []int{2}, 1, 1))
		}
		bufs := [][]int{{0}, {0}, {0}}
		var rs []*Request
		for tag := range 2 {
			r, err := Irecv(w.Comm, bufs[tag], 0, tag)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		if _, err := rs[0].Wait(); err != nil {
			return err
		}
		if err := first(rs[0].Cancel(), rs[1].Cancel()); err != nil {
			return err
		}
		ss, err := Waitall(rs...)
		if err != nil || ss[0].Cancelled || !ss[1].Cancelled || ss[1].Size != 0 {
			return fmt.Errorf("statuses %+v, %w", ss, err)
		}
		if err := Barrier(w.Comm); err != nil {
			return err
		}
		_, err = Recv(w.Comm, bufs[2], 0, 1)
		return first(err, want("received", slices.Concat(bufs...), []int{1, 0, 2}))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	stop := errors.New("enough")
	err := RunLocal(context.Background(), 2, func(w *World) error {
		if w.Rank() == 0 {
			return first(Barrier(w.Comm), Send(w.Comm, []int{1}, 1, 0))
		}
		buf := make([]int, 1)
		r, err := Irecv(w.Comm, buf, 0, 0)
		if err != nil {
			return err
		}
		for name, call := range map[string]func(context.Context) error{
			"RecvContext":  func(ctx context.Context) error { return last(RecvContext(ctx, w.Comm, make([]int, 1), AnySource, 7)) },
			"ProbeContext": func(ctx context.Context) error { return last(ProbeContext(ctx, w.Comm, 0, 7)) },
			"WaitContext":  func(ctx context.Context) error { return last(r.WaitContext(ctx)) },
		} {
			ctx, cancel := context.WithCancelCause(context.Background())
			ended := make(chan error)
			go func() { ended <- call(ctx) }()
			cancel(stop)
			if err := <-ended; !errors.Is(err, ErrContext) || !errors.Is(err, stop) {
				return fmt.Errorf("%s with a cancelled context returned %w", name, err)
			}
		}
		if err := Barrier(w.Comm); err != nil {
			return err
		}
		_, err = r.WaitContext(t.Context()) // the request is still active; only the earlier wait has ended
		return first(err, want("received", buf, []int{1}))
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReplicasRefuseToCancel checks that Cancel fails at all replicas.
func TestReplicasRefuseToCancel(t *testing.T) {
	job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2})
	err := runIn(job, func(w *World) error {
		if w.Rank() == 0 {
			return first(Barrier(w.Comm), Send(w.Comm, []int{1}, 1, 0))
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		buf := make([]int, 1)
		if _, err := RecvContext(ctx, w.Comm, buf, 0, 0); !errors.Is(err, ErrUnsupported) {
			return fmt.Errorf("RecvContext: got %w", err)
		}
		r, err := Irecv(w.Comm, buf, 0, 0)
		if err != nil {
			return err
		}
		if err := r.Cancel(); !errors.Is(err, ErrUnsupported) {
			return fmt.Errorf("Cancel: got %w", err)
		}
		return first(Barrier(w.Comm), last(r.Wait()))
	})
	if err != nil {
		t.Error(err)
	}
}

// TestR4ContextsAndSeedsAreDecidedOnce checks R4: the master decides whether a context ended in
// time, and draws random seeds.
func TestR4ContextsAndSeedsAreDecidedOnce(t *testing.T) {
	t.Run("WaitContext", func(t *testing.T) {
		kills(t, 2, wild(func(_ *receiver, tr *trial, w *World, _ int) (int, error) {
			buf := make([]int, 1)
			r, err := Irecv(w.Comm, buf, AnySource, AnyTag)
			if err != nil {
				return 0, err
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			for tries := 0; ; tries++ {
				seed := w.RandomSeed() // before the wait, because the seed of a killed process is 0
				_, err := r.WaitContext(ctx)
				if err == nil {
					tr.see(w, "%d tries, seed %d", tries, seed)
					return buf[0], nil
				}
				if !errors.Is(err, ErrContext) {
					return 0, err
				}
			}
		}))
	})
	t.Run("ProbeContext", func(t *testing.T) {
		kills(t, 2, wild(func(_ *receiver, tr *trial, w *World, _ int) (int, error) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			for tries := 0; ; tries++ {
				seed := w.RandomSeed()
				s, err := ProbeContext(ctx, w.Comm, AnySource, AnyTag)
				if err == nil {
					tr.see(w, "%d tries, seed %d", tries, seed)
					buf := make([]int, 1)
					_, err = Recv(w.Comm, buf, s.Source, s.Tag)
					return buf[0], err
				}
				if !errors.Is(err, ErrContext) {
					return 0, err
				}
			}
		}))
	})
	t.Run("Improbe", func(t *testing.T) {
		kills(t, 2, wild(func(_ *receiver, tr *trial, w *World, _ int) (int, error) {
			for tries := 0; ; tries++ {
				m, _, ok, err := Improbe(w.Comm, AnySource, AnyTag)
				if err != nil {
					return 0, err
				}
				if ok {
					tr.see(w, "%d tries", tries)
					buf := make([]int, 1)
					_, err := Mrecv(m, buf)
					return buf[0], err
				}
			}
		}))
	})
}

func TestRandIsReproducibleAndDiffersBetweenRanks(t *testing.T) {
	draws := make([]uint64, 3)
	for range 2 {
		err := RunLocal(context.Background(), 3, func(w *World) error {
			n := w.Rand(42).Uint64()
			if before := draws[w.Rank()]; before != 0 && before != n {
				return fmt.Errorf("got %d and then %d", before, n)
			}
			draws[w.Rank()] = n
			if a, b := w.RandomSeed(), w.RandomSeed(); a == b {
				return fmt.Errorf("got the seed %d twice", a)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if draws[0] == draws[1] || draws[1] == draws[2] {
		t.Errorf("ranks draw the same numbers: %v", draws)
	}
}

func TestMisusedMessagesAndRequestsAreNamed(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(w *World) error {
		if err := Send(w.Comm, []int{1, 2}, 0, 0); err != nil {
			return err
		}
		m, _, err := Mprobe(w.Comm, 0, 0)
		if err != nil {
			return err
		}
		if _, err := Mrecv(m, make([]int, 1)); !errors.Is(err, ErrTruncate) {
			t.Errorf("into a short buffer: got %v", err)
		}
		for _, m := range []*Message{m, nil} {
			if _, err := Mrecv(m, make([]int, 2)); !errors.Is(err, ErrRequest) {
				t.Errorf("a message received twice, or no message: got %v", err)
			}
		}
		r, err := Irecv(w.Comm, make([]int, 1), ProcNull, 0)
		if err != nil {
			return err
		}
		for _, r := range []*Request{r, nil} {
			if err := r.Start(); !errors.Is(err, ErrRequest) {
				t.Errorf("Start of a request that is not persistent: got %v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
