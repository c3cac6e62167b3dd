package job

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// resuming has a peer of b follow a script whenever it is asked to resume its part. Then
// its stream breaks.
func (b *bed) resuming(m *member, script func(*part)) {
	m.SetStreamHandler(Protocol, func(s network.Stream) {
		b.stage.acting.Add(1)
		defer b.stage.acting.Done()
		p := &part{bed: b, peer: m, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage)}
		defer p.leave()
		await(p, (*jobpb.ToPeer).GetResume)
		script(p)
	})
	b.Cleanup(b.stage.acting.Wait)
}

// partedOn returns a running job of 2 ranks and 2 replicas whose submitter, that of b, is
// parted from its peers. The first of those that b has are the first of the job's.
func (b *bed) partedOn() *execution {
	e := newHearing(b)
	e.j.s, e.j.req.Away, e.parted = b.submitter, time.Hour, true
	e.agreed, e.inbox, e.done = newAgreed(), make(chan heard), make(chan struct{})
	for i, m := range b.peers {
		e.links[i].peer = m.ID()
	}
	b.Cleanup(func() {
		close(e.done)
		for _, l := range e.links {
			l.close()
		}
	})
	return e
}

// nextHeard returns what is heard next.
func (e *execution) nextHeard(t *testing.T) heard {
	t.Helper()
	select {
	case h := <-e.inbox:
		return h
	case <-time.After(patience):
		t.Fatal("nothing more is heard")
		return heard{}
	}
}

// TestR6WhatIsRepeatedAfterEachCutIsKeptOnce: the stream to a peer breaks again and again,
// though nobody has found it silent. Each time it brings all that the user has not got of a
// process that does not speak here yet, which counts against the peer once.
func TestR6WhatIsRepeatedAfterEachCutIsKeptOnce(t *testing.T) {
	const lines, cuts = 3, 4
	b := newBed(t, never, 1, 1)
	heardAll := make(chan struct{})
	b.resuming(b.peers[1], func(p *part) {
		p.back()
		for i := range uint64(lines) {
			p.writes(other, i, strings.Repeat("x", maxUnread/4-1)+"\n")
		}
		select {
		case <-heardAll:
		case <-t.Context().Done():
		}
	})
	e := b.partedOn()
	l := e.runsOn[other]
	e.strand(l)
	for range cuts {
		before := l.wire
		for range 1 + lines {
			if h := e.nextHeard(t); h.back {
				e.resumed(h)
			} else if l.hears(h) {
				e.hear(h)
			}
			if l.err != nil {
				t.Fatal(l.err)
			}
		}
		heardAll <- struct{}{}
		if e.hear(e.nextHeard(t)); !l.away {
			t.Fatal("its stream is not made anew")
		}
		if l.hears(heard{link: l, wire: before, msg: exitedMessage(other, wellEnded)}) {
			t.Error("what the old stream brings is heard, and will be repeated")
		}
	}
	e.apply(e.watch.Lost([]view.Process{master}, "is lost"))
	e.hearUntimely()
	if got := e.emission.Next(0, Stdout); got != lines {
		t.Errorf("the user gets %d lines, want %d", got, lines)
	}
}

// TestReopeningLeavesOtherJobsTheirConnections: many jobs of one process share the connections
// to a peer. One that works is closed by no job but the one whose last stream was on it.
func TestReopeningLeavesOtherJobsTheirConnections(t *testing.T) {
	b := newBed(t, never, 1)
	var asked atomic.Int32
	b.resuming(b.peers[0], func(p *part) {
		if asked.Add(1) == 3 {
			p.vanish()
		}
		p.back()
		p.in.ReadMsg(&jobpb.ToPeer{}) // until the stream is made anew
	})
	e := b.partedOn()
	l, other := e.links[0], e.links[1]
	other.peer = l.peer
	reopened := func(l *link) {
		e.strand(l)
		for {
			if h := e.nextHeard(t); h.back {
				e.resumed(h)
				return
			}
		}
	}
	closed := func(why string, c network.Conn, want bool) {
		t.Helper()
		if c.IsClosed() != want {
			t.Errorf("%s, and the connection is closed: %v, want %v", why, c.IsClosed(), want)
		}
	}
	shared := b.own.Network().ConnsToPeer(l.peer)[0]
	reopened(l)
	closed("the link had no stream", shared, false)
	reopened(l)
	closed("the link's last stream was on it", shared, true)
	shared = l.stream.Conn()
	reopened(other)
	closed("the other link's first attempt on it has failed", shared, true)
}

// TestSubmitterWhosePeersHaveEndedWaitsForNobody though it is cut off, and would bear that
// for an hour.
func TestSubmitterWhosePeersHaveEndedWaitsForNobody(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	e := b.partedOn()
	c := viewgroup.GroupConfig{
		Job: "job", First: 5, Members: viewgroup.Members(5), View: e.watch.View(), RunsOn: make(map[view.Process]int),
		Committed: e.agreed.committed, Contact: e.agreed.contacted, Came: func(viewgroup.Newcomer) {},
	}
	c.Peers = append(c.Peers, b.own.ID())
	for i, m := range b.peers {
		c.Peers = append(c.Peers, m.ID())
		c.RunsOn[e.links[i].processes[0]] = i + 1
		b.resuming(m, func(p *part) {
			p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Error: "no such job here"}}})
		})
	}
	var err error
	if e.views, err = b.own.views.Join(c); err != nil {
		t.Fatal(err)
	}
	defer e.views.Close()
	for e.views.Contact() == viewgroup.InTouch {
		select {
		case <-e.agreed.news:
		case <-time.After(patience):
			t.Fatal("it is in touch with nobody, and does not know")
		}
	}
	e.begin = &jobpb.ToPeer{}
	for _, l := range e.links {
		e.strand(l)
	}
	var r *Result
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for r == nil && ctx.Err() == nil {
		r = e.turn(ctx, nil)
	}
	if ctx.Err() != nil || r.Status != StatusLost {
		t.Errorf("result %+v, %v", r, ctx.Err())
	}
}
