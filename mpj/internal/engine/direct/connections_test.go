package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
func newSending(t *testing.T, v view.View, all ...*scriptedSender) *engine.Engine {
	t.Helper()
	opener := make(senders, len(all))
	for _, s := range all {
		opener <- s
	}
	return newEngine(t, v, opener)
}

// newEngine returns the engine of process 0.0.
func newEngine(t *testing.T, v view.View, opener channel.Opener) *engine.Engine {
	t.Helper()
	e := engine.New(t.Context(), engine.Config{View: v, Transport: New, Opener: opener})
	t.Cleanup(e.Close)
	return e
}

// A noOpener opens no channels.
type noOpener struct{}

func (noOpener) Open(_ context.Context, to view.Process) (channel.Sender, error) {
	return nil, fmt.Errorf("no path to %v", to)
}

func sendShort(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.Send(2, 1, 0, []byte{1}, engine.Standard); err != nil {
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
	go e.Send(2, 1, 0, []byte{1}, engine.Standard) // this goroutine writes the frame itself
	<-second.sent                                  // so the earlier frames are recorded as written
	d := e.Transport().(*transport)
	d.loop.Lock()
	defer d.loop.Unlock()
	if err := d.outflows[1].acknowledged(frame.Header{Kind: frame.Ack, Seq: 3}); err != nil {
		t.Fatal(err)
	}
	if o := d.outflows[1]; o.Queued() != 1 || o.Header(0).Seq != 4 || d.loop.QueuedBytes() != frame.HeaderSize+1 {
		t.Errorf("%d frames with %d bytes are queued, want only frame 4", o.Queued(), d.loop.QueuedBytes())
	}
}

// TestDroppedOutletKeepsMemoryBeingWritten drops an outlet while its channel reads the payload of
// one message and another message waits. Only the memory of the waiting message may be reused.
func TestDroppedOutletKeepsMemoryBeingWritten(t *testing.T) {
	v, s := view.New(2, 1), newScriptedSender()
	e := newSending(t, v, s)
	sendShort(t, e)
	written := (<-s.sent)[0].Payload
	d := e.Transport().(*transport)
	waiting := make([]byte, 1, len(written[:cap(written)]))
	d.loop.Lock()
	d.loop.GiveBack(waiting) // the memory of the second message
	d.loop.Unlock()
	sendShort(t, e)
	next, _ := v.With(view.Process{Rank: 1}, view.Failed)
	e.View(next)
	d.loop.Lock()
	defer d.loop.Unlock()
	if n := d.loop.QueuedBytes(); n != 0 {
		t.Errorf("%d bytes are queued for a failed process", n)
	}
	first, second := d.loop.LendOut(1)[:1], d.loop.LendOut(1)[:1]
	if &first[0] != &waiting[0] || &second[0] == &written[0] {
		t.Error("the payload that was being written may be reused, or the other one may not")
	}
}

// TestUnreachableProcessWithoutReplicasIsAnError checks that, without replicas, an unreachable
// process that stays in the view eventually causes an error, but not within the silence that the job
// tolerates.
func TestUnreachableProcessWithoutReplicasIsAnError(t *testing.T) {
	const limit = 50 * time.Millisecond
	defer func(before time.Duration) { openTimeout = before }(openTimeout)
	openTimeout = limit
	for _, tolerated := range []time.Duration{0, 300 * time.Millisecond} {
		e := newEngine(t, view.New(2, 1), noOpener{})
		e.SetToleratedHang(tolerated)
		start := time.Now()
		if err := e.Send(2, 1, 0, nil, engine.Standard); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Recv(2, 1, 0, nil); err == nil || errors.Is(err, engine.ErrClosed) {
			t.Errorf("Recv returned %v, want the reason of the failure", err)
		}
		if took := time.Since(start); took < limit+tolerated {
			t.Errorf("the send failed after %v, want at least %v", took, limit+tolerated)
		}
	}
}
