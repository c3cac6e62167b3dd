package job

import (
	"strings"
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
		<-heardAll
	})
	e := b.partedOn()
	l := e.runsOn[other]
	e.strand(l)
	for range cuts {
		before := l.wire
		for range 1 + lines {
			h := <-e.inbox
			if h.back {
				e.resumed(h)
			} else if l.hears(h) {
				e.hear(h)
			}
		}
		heardAll <- struct{}{}
		e.hear(<-e.inbox)
		if l.err != nil || !l.away {
			t.Fatalf("link %v, away %v; want its stream made anew", l.err, l.away)
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
		<-e.agreed.news
	}
	e.begin = &jobpb.ToPeer{}
	for _, l := range e.links {
		e.strand(l)
	}
	var r *Result
	for late := time.After(patience); r == nil; {
		select {
		case <-late:
			t.Fatal("it waits")
		default:
			r = e.turn(t.Context(), nil)
		}
	}
	if r.Status != StatusLost {
		t.Errorf("status %d, %q", r.Status, r.Message)
	}
}
