package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
	"github.com/p2pmpi/p2pmpi/mpj/internal/protect"
)

func TestMain(m *testing.M) {
	if way, ok := os.LookupEnv(partnerVariable); ok {
		if err := partner(way); err != nil {
			fmt.Fprintln(os.Stderr, "partner:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const context2 = 2 // a context for messages

// A breakingSender breaks after a number of frames, and sends only a part of the last batch.
type breakingSender struct {
	channel.Sender
	left int
}

func (b *breakingSender) Send(frames ...frame.Frame) error {
	if b.left >= len(frames) {
		b.left -= len(frames)
		return b.Sender.Send(frames...)
	}
	b.Sender.Send(frames[:b.left]...)
	b.Sender.Close()
	return errors.New("broken by the test")
}

// A lossy is a sender that accepts a last frame, loses it, and breaks.
type lossy struct {
	channel.Sender
	left   int
	broken chan struct{}
}

func (l *lossy) Broken() <-chan struct{} { return l.broken }

func (l *lossy) Send(frames ...frame.Frame) error {
	if l.left > 0 {
		l.left--
		return l.Sender.Send(frames...)
	}
	select {
	case <-l.broken:
		return errors.New("broken by the test")
	default:
		close(l.broken)
		return nil
	}
}

// TestR2IdleChannelMayBreak checks that a lost frame is sent again even if its sender has no further
// frames to send.
func TestR2IdleChannelMayBreak(t *testing.T) {
	job := localworld.New(context.Background(), localworld.Config{
		Ranks: 2, Replicas: 2,
		Wrap: func(_, _ view.Process, s channel.Sender) channel.Sender { return &lossy{s, 1, make(chan struct{})} },
	})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		for range 5 {
			if p.Rank == 0 {
				if err := e.Send(context2, 1, 0, nil, engine.Standard); err != nil {
					return err
				}
			}
			if _, err := e.Recv(context2, 1-p.Rank, 0, nil); err != nil {
				return err
			}
			if p.Rank == 1 {
				if err := e.Send(context2, 0, 0, nil, engine.Standard); err != nil {
					return err
				}
			}
		}
		if err := e.Flush(); err != nil {
			return err
		}
		job.Finish(p)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestChannelsMayBreak(t *testing.T) {
	skip.Long(t)
	for seed := range uint64(8) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, 0))
		job := localworld.New(context.Background(), localworld.Config{
			Ranks: 3, Replicas: 1 + int(seed%2), Sockets: seed%4 < 2,
			Wrap: func(_, _ view.Process, s channel.Sender) channel.Sender {
				mu.Lock()
				defer mu.Unlock()
				return &breakingSender{s, 10 + random.IntN(60)}
			},
		})
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			if err := talkToNeighbours(p, e); err != nil {
				return err
			}
			if err := e.Flush(); err != nil {
				return err
			}
			job.Finish(p)
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestRings checks that rings deliver everything in order, with and without replicas, and with more
// processes than processors.
func TestRings(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		job := localworld.New(context.Background(), localworld.Config{Ranks: 3, Replicas: replicas, Rings: true})
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			for range 2 {
				if err := talkToNeighbours(p, e); err != nil {
					return err
				}
			}
			if err := e.Flush(); err != nil {
				return err
			}
			job.Finish(p)
			return nil
		})
		if err != nil {
			t.Errorf("r=%d: %v", replicas, err)
		}
	}
}

// TestClosedRingsAreNotRead checks that calls which look for messages fail after the engine was closed.
func TestClosedRingsAreNotRead(t *testing.T) {
	job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 1, Rings: true})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		if _, err := e.Sendrecv(context2, 1-p.Rank, 0, []byte{1}, 1-p.Rank, 0, make([]byte, 1)); err != nil {
			return err
		}
		if err := e.Flush(); err != nil {
			return err
		}
		job.Finish(p)
		e.Close()
		if _, _, ok, err := e.Improbe(context2, engine.AnySource, 0); ok || !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Improbe returned %v, %v, want ErrClosed", ok, err)
		}
		e.Unmatched()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// talkToNeighbours sends short and long messages to the next rank. It receives from the previous
// rank, alternately by rank and with AnySource.
func talkToNeighbours(p view.Process, e *engine.Engine) error {
	for i := range 60 {
		out := make([]byte, 1+i%3*100_000)
		out[0], out[len(out)-1] = byte(i), byte(i)
		sent, err := e.Isend(context2, (p.Rank+1)%3, 0, out, engine.Standard)
		if err != nil {
			return err
		}
		source := (p.Rank + 2) % 3
		if i%2 == 0 {
			source = engine.AnySource
		}
		buf := make([]byte, 200_001)
		s, err := e.Recv(context2, source, 0, buf)
		if err != nil {
			return err
		}
		if buf[0] != byte(i) || s.Size != len(out) || buf[s.Size-1] != byte(i) {
			return fmt.Errorf("the process received message %d of %d bytes, want message %d", buf[0], s.Size, i)
		}
		if _, err := e.Wait(sent); err != nil {
			return err
		}
	}
	return nil
}

// A noOpener opens no channels.
type noOpener struct{}

func (noOpener) Open(ctx context.Context, to view.Process) (channel.Sender, error) {
	return nil, fmt.Errorf("no path to %v", to)
}

func newEngine(t *testing.T, self view.Process, v view.View) *engine.Engine {
	t.Helper()
	c := engine.Config{Self: self, View: v, Transport: direct.New, Opener: noOpener{}}
	if protocol := protect.For(self, v, false); protocol != nil {
		c.Transport = protected.New(protected.Config{Protocol: protocol})
	}
	e := engine.New(context.Background(), c)
	t.Cleanup(e.Close)
	return e
}

func TestR5ExpelledProcessStops(t *testing.T) {
	v, self := view.New(2, 2), view.Process{Rank: 0, Replica: 1}
	e := newEngine(t, self, v)
	next, _ := v.With(self, view.Failed)
	e.View(next)
	if _, err := e.Recv(context2, 1, 0, nil); !errors.Is(err, engine.ErrExpelled) {
		t.Errorf("Recv returned %v, want ErrExpelled", err)
	}
}

func TestSendToALostRankFails(t *testing.T) {
	v := view.New(2, 1)
	e := newEngine(t, view.Process{}, v)
	next, _ := v.With(view.Process{Rank: 1}, view.Failed)
	e.View(next)
	if err := e.Send(context2, 1, 0, nil, engine.Standard); err == nil {
		t.Error("Send to a lost rank returned no error")
	}
}

func TestSendToAFinishedRankIsDropped(t *testing.T) {
	v := view.New(2, 1)
	e := newEngine(t, view.Process{}, v)
	if err := e.Send(context2, 1, 0, []byte("unread"), engine.Standard); err != nil {
		t.Fatal(err)
	}
	next, _ := v.With(view.Process{Rank: 1}, view.Finished)
	e.View(next)
	if err := errors.Join(e.Send(context2, 1, 0, nil, engine.Standard), e.Flush()); err != nil {
		t.Error(err)
	}
}

func TestHostileFrameEndsTheEngine(t *testing.T) {
	e := newEngine(t, view.Process{}, view.New(2, 1))
	s, r := channel.Self()
	e.Accept(view.Process{Rank: 1}, r)
	s.Send(frame.Frame{Header: frame.Header{Kind: frame.SyncReply, Rank: 1}})
	if _, err := e.Recv(context2, 1, 0, nil); err == nil || errors.Is(err, engine.ErrClosed) {
		t.Errorf("Recv returned %v, want the protocol violation", err)
	}
}

// TestCloseEndsWaitingCalls checks that Close ends every waiting call, and returns.
func TestCloseEndsWaitingCalls(t *testing.T) {
	e := newEngine(t, view.Process{}, view.New(2, 1))
	r, err := e.Irecv(context2, 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	rs := []*engine.Request{r}
	calls := map[string]func() error{
		"Recv":     func() error { _, err := e.Recv(context2, 1, 0, nil); return err },
		"Probe":    func() error { _, err := e.Probe(context2, 1, 0); return err },
		"ProbeAny": func() error { _, err := e.Probe(context2, engine.AnySource, 0); return err },
		"Wait":     func() error { _, err := e.Wait(r); return err },
	}
	var waiting sync.WaitGroup
	for name, call := range calls {
		waiting.Go(func() {
			if err := call(); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%s on a closed engine returned %v", name, err)
			}
		})
	}
	e.Close()
	waiting.Wait()
	if _, err := e.Waitany(rs); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("Waitany: got %v", err)
	}
}
