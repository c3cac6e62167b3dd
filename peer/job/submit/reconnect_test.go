package submit

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// begunOn returns a job that has begun, and an open link to one of its peers. The peer answers
// whenever it is asked to resume its part.
func (b *bed) begunOn(t *testing.T) (*execution, *link) {
	t.Helper()
	b.resuming(b.peers[1], func(p *part) {
		p.back()
		await(p, (*jobpb.ToPeer).GetStop) // never arrives
	})
	e := b.partedOn()
	e.partition.active, e.begin, e.peers.reopens = false, &jobpb.ToPeer{}, true
	l := e.peers.runsOn[other]
	e.disconnect(l, nil)
	e.receive(e.nextHeard(t))
	if l.session.disconnected || l.stream == nil {
		t.Fatal("no stream")
	}
	return e, l
}

// TestDisconnectedIsNotFailed breaks the connection with a peer. The control stream is reopened,
// and the peer is not lost.
func TestDisconnectedIsNotFailed(t *testing.T) {
	e, l := newBed(t, never, 1, 1).begunOn(t)
	for range 3 {
		l.stream.Conn().Close()
		e.receive(e.nextHeard(t))
		if l.err != nil || !l.session.disconnected {
			t.Fatalf("lost: %v, away: %v; want it away", l.err, l.session.disconnected)
		}
		for l.session.disconnected && l.err == nil {
			e.receive(e.nextHeard(t))
		}
		if l.err != nil {
			t.Fatal(l.err)
		}
	}
}

// TestF2KilledPeerIsLostAtOnce: the peer's machine refuses connections to it.
func TestF2KilledPeerIsLostAtOnce(t *testing.T) {
	b := newBed(t, never, 1, 1)
	e, l := b.begunOn(t)
	l.endpoints.Probe(t.Context(), e.j.s.cfg.Host, l.peer) // as after a reconnect
	b.peers[1].Host.Close()
	for l.err == nil {
		e.receive(e.nextHeard(t))
	}
	if !errors.Is(l.err, errRefused) {
		t.Errorf("lost since %v, want that it is refused", l.err)
	}
}

// TestStreamEndedByThePeerIsNotReopened: a stream that the peer has ended is not reopened, and
// neither is one of a job that has not begun.
func TestStreamEndedByThePeerIsNotReopened(t *testing.T) {
	e, l := newBed(t, never, 1, 1).begunOn(t)
	for name, c := range map[string]struct {
		err   error
		begun bool
		want  bool
	}{
		"the connection broke":       {network.ErrReset, true, true},
		"before the job began":       {network.ErrReset, false, false},
		"the peer reset the stream":  {&network.StreamError{Remote: true}, true, false},
		"the peer could not write":   {&network.StreamError{Remote: true, ErrorCode: jobpb.Unwritten}, true, true},
		"this side reset the stream": {&network.StreamError{}, true, true},
		"the peer closed the stream": {io.EOF, true, false},
		"the peer sent garbage":      {proto.Error, true, false},
		"a message without bounds":   {io.ErrShortBuffer, true, false},
		"the peer closed everything": {&network.ConnError{Remote: true}, true, true},
	} {
		e.peers.reopens = c.begun
		if got := e.peers.mayReconnect(l, c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestS4StreamToAFailedPeerIsClosed covers a stream that is reopened just then. Otherwise the
// peer would wait there for its start, and keep its slots.
func TestS4StreamToAFailedPeerIsClosed(t *testing.T) {
	b := newBed(t, never, 1)
	ended := make(chan error, 1)
	b.resuming(b.peers[0], func(p *part) {
		p.back()
		p.stream.SetReadDeadline(time.Now().Add(eventTimeout))
		ended <- p.in.ReadMsg(&jobpb.ToPeer{})
	})
	e := b.partedOn()
	e.peers.reopens = true
	l := e.peers.links[0]
	e.disconnect(l, nil)
	back := e.nextHeard(t)
	l.lose(errSilent)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends when await has taken back
		e.peers.inbox.messages <- back
		cancel()
	}()
	e.startup().await(ctx, "stage the job at", func(received) error { return nil })
	if err := <-ended; !errors.Is(err, network.ErrReset) {
		t.Errorf("the peer hears %v, want that the stream is reset", err)
	}
}
