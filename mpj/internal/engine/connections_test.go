package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A scriptedSender passes the frames of each Send to the test, which decides how Send ends.
type scriptedSender struct {
	sent   chan []frame.Frame
	result chan error
	closed chan struct{}
	once   sync.Once
}

func newScriptedSender() *scriptedSender {
	return &scriptedSender{sent: make(chan []frame.Frame), result: make(chan error), closed: make(chan struct{})}
}

func (s *scriptedSender) Send(frames ...frame.Frame) error {
	select {
	case s.sent <- slices.Clone(frames):
	case <-s.closed:
		return errors.New("closed")
	}
	select {
	case err := <-s.result:
		return err
	case <-s.closed:
		return errors.New("closed")
	}
}

func (s *scriptedSender) Broken() <-chan struct{} { return nil }
func (s *scriptedSender) Limits() channel.Limits  { return channel.Limits{Copied: 1 << 10} }

func (s *scriptedSender) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// senders is an opener that opens the given channels one after the other.
type senders chan channel.Sender

func (s senders) Open(ctx context.Context, _ view.Process) (channel.Sender, error) {
	select {
	case next := <-s:
		return next, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newSending returns the engine of process 0.0, which opens the given channels.
func newSending(t *testing.T, v view.View, all ...*scriptedSender) *Engine {
	t.Helper()
	opener := make(senders, len(all))
	for _, s := range all {
		opener <- s
	}
	e := New(t.Context(), Config{View: v, Opener: opener})
	t.Cleanup(e.Close)
	return e
}

func sendShort(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Send(2, 1, 0, []byte{1}, Standard); err != nil {
		t.Fatal(err)
	}
}

// TestNewChannelRepeatsUnacknowledgedFrames breaks a channel during a Send. The next channel must
// carry all frames again, in order, and the frames leave the queue when they are acknowledged.
func TestNewChannelRepeatsUnacknowledgedFrames(t *testing.T) {
	first, second := newScriptedSender(), newScriptedSender()
	e := newSending(t, view.New(2, 1), first, second)
	for range 3 {
		sendShort(t, e)
	}
	<-first.sent
	first.result <- errors.New("broken")
	var seqs []uint64
	for len(seqs) < 3 {
		for _, f := range <-second.sent {
			seqs = append(seqs, f.Seq)
		}
		second.result <- nil
	}
	if !slices.Equal(seqs, []uint64{1, 2, 3}) {
		t.Errorf("the second channel carried the frames %v, want 1, 2 and 3", seqs)
	}
	go e.Send(2, 1, 0, []byte{1}, Standard) // this goroutine writes the frame itself
	<-second.sent                           // so the earlier frames are recorded as written
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.direct().acknowledged(view.Process{Rank: 1}, frame.Header{Kind: frame.Ack, Seq: 3}); err != nil {
		t.Fatal(err)
	}
	if o := e.conns.outlets[1]; len(o.queue) != 1 || o.queue[0].Seq != 4 || e.conns.queued != frame.HeaderSize+1 {
		t.Errorf("%d frames with %d bytes are queued, want only frame 4", len(o.queue), e.conns.queued)
	}
}

// TestDroppedOutletKeepsMemoryBeingWritten drops an outlet while its channel reads the payload of
// one message and another message waits. Only the memory of the waiting message may be reused.
func TestDroppedOutletKeepsMemoryBeingWritten(t *testing.T) {
	v, s := view.New(2, 1), newScriptedSender()
	e := newSending(t, v, s)
	sendShort(t, e)
	written := (<-s.sent)[0].Payload
	sendShort(t, e)
	next, _ := v.With(view.Process{Rank: 1}, view.Failed)
	e.View(next)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns.queued != 0 {
		t.Errorf("%d bytes are queued for a failed process", e.conns.queued)
	}
	if free := e.payloads.shorts; len(free) != 1 || &free[0][:1][0] == &written[0] {
		t.Errorf("%d payloads may be reused, want the payload that was not being written", len(free))
	}
}

// TestGrowKeepsChannelsOfProcesses checks that a view with more replicas moves no channel to another
// process.
func TestGrowKeepsChannelsOfProcesses(t *testing.T) {
	c := connections{replicas: 2, outlets: make([]*Outlet, 6), inlets: make([]*inlet, 6)}
	for _, p := range view.New(3, 2).Processes() {
		c.outlets[c.index(p)], c.inlets[c.index(p)] = &Outlet{to: p}, &inlet{from: p}
	}
	c.grow(view.New(3, 4))
	for _, p := range view.New(3, 4).Processes() {
		o, in := c.outlets[c.index(p)], c.inlets[c.index(p)]
		if old := p.Replica < 2; (o != nil) != old || old && (o.to != p || in.from != p) {
			t.Errorf("process %v has outlet %v and inlet %v", p, o, in)
		}
	}
}
