package submit

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// resuming makes a peer of b follow a script whenever it is asked to resume its part. The stream
// breaks when the script returns.
func (b *bed) resuming(m *member, script func(*part)) {
	b.stage.begin(b)
	m.SetStreamHandler(Protocol, func(s network.Stream) {
		if !b.stage.enter(s) {
			return
		}
		defer b.stage.acting.Done()
		p := &part{bed: b, peer: m, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage)}
		defer p.leave()
		await(p, (*jobpb.ToPeer).GetResume)
		script(p)
	})
}

// partedOn returns a running job of 2 ranks and 2 replicas whose submitter, that of b, is
// disconnected from its peers. The peers of b are the first peers of the job.
func (b *bed) partedOn() *execution {
	e := newHearing(b)
	e.j.s, e.j.req.Away, e.partition.active = b.submitter, time.Hour, true
	e.views.events, e.peers.inbox = newAgreed(), newInbox()
	for i, m := range b.peers {
		e.peers.links[i].peer = m.ID()
	}
	b.Cleanup(func() {
		close(e.peers.inbox.done)
		for _, l := range e.peers.links {
			l.close()
		}
	})
	return e
}

// TestPeerThatKnowsItsEndIsAwaited checks which peers a partitioned submitter waits for if all their processes have
// failed: only those that requested it. The others have failed with their processes.
func TestPeerThatKnowsItsEndIsAwaited(t *testing.T) {
	v := view.New(1, 3)
	for by, want := range map[int]bool{1: true, 2: false} {
		p := proc(0, 1)
		l := newLink(reservation.Placement{}, p)
		defer l.close()
		l.number, l.session.disconnected = 1, true
		held := partition{active: true, changes: []viewgroup.Committed{{Change: view.Change{Process: p, To: view.Failed}, Epoch: 2, By: []int{by}}}}
		if got := held.awaits(l, held.viewAfter(v)); got != want {
			t.Errorf("peer 1 is awaited: %v, want %v, after peer %d has requested the failure of its process", got, want, by)
		}
	}
}

// agreeing makes the submitter and some peers of b members of a view group for e. All of them may
// vote. The job has begun.
func (b *bed) agreeing(e *execution, with ...*member) {
	b.Helper()
	c := viewgroup.GroupConfig{
		Job: "job", First: 1 + len(b.peers), Members: viewgroup.Members(1 + len(b.peers)), Peers: []p2ppeer.ID{b.own.ID()},
		View: e.state.View(), RunsOn: make(map[view.Process]int),
		Committed: func([]viewgroup.Committed, view.View) {}, Contact: func(viewgroup.Contact) {}, Came: func(viewgroup.Newcomer) {},
	}
	for i, m := range b.peers {
		c.Peers = append(c.Peers, m.ID())
		c.RunsOn[e.peers.links[i].processes[0]] = i + 1
	}
	join := func(m *member, c viewgroup.GroupConfig) *viewgroup.Group {
		c.Self = slices.Index(c.Peers, m.ID())
		g, err := m.views.Join(c)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(g.Close)
		return g
	}
	for _, m := range with {
		join(m, c)
	}
	c.Committed, c.Contact = e.views.events.committed, e.views.events.contacted
	e.views.group, e.begin, e.peers.reopens = join(b.own, c), &jobpb.ToPeer{}, true
}

// nextHeard returns the next event of a link.
func (e *execution) nextHeard(t *testing.T) received {
	t.Helper()
	select {
	case h := <-e.peers.inbox.messages:
		return h
	case <-time.After(eventTimeout):
		t.Fatal("nothing more is heard")
		return received{}
	}
}

// TestR6RepeatedOutputAfterReconnectsCountsOnce: the stream to a peer breaks again and again,
// although the peer is not found silent. Each time the peer repeats all output of a process that is
// not an output leader yet. The output counts against the peer's limit only once.
func TestR6RepeatedOutputAfterReconnectsCountsOnce(t *testing.T) {
	const lines, cuts, records = 3, 4, maxUnread / 4 / job.MaxRecord // of a line
	b := newBed(t, never, 1, 1)
	heardAll := make(chan struct{})
	b.resuming(b.peers[1], func(p *part) {
		p.back()
		for i := range uint64(lines) {
			p.writes(other, i*records, strings.Repeat("x", maxUnread/4-1)+"\n")
		}
		select {
		case <-heardAll:
		case <-t.Context().Done():
		}
	})
	e := b.partedOn()
	l := e.peers.runsOn[other]
	e.disconnect(l, nil)
	for range cuts {
		before := l.wire
		for range 1 + lines {
			if h := e.nextHeard(t); h.back {
				e.resumed(h)
			} else if l.acceptMessage(h) {
				e.handle(h)
			}
			if l.err != nil {
				t.Fatal(l.err)
			}
		}
		heardAll <- struct{}{}
		if e.handle(e.nextHeard(t)); !l.session.disconnected {
			t.Fatal("the stream of the peer was not reopened")
		}
		if l.acceptMessage(received{link: l, wire: before, msg: exitedMessage(other, wellEnded)}) {
			t.Error("accepted a message from the old stream, which the peer will repeat")
		}
	}
	e.apply(e.state.Apply(job.Lost{Processes: []view.Process{master}, Why: "is lost"}))
	e.outputEarly()
	if got := e.outputs.emission.Next(0, job.Stdout); got != lines*records {
		t.Errorf("the user gets %d records, want %d", got, lines*records)
	}
}

// TestReopeningKeepsConnectionsOfOtherJobs: many jobs of one process share the connections to a
// peer. A job closes a working connection only if its own last stream was on it.
func TestReopeningKeepsConnectionsOfOtherJobs(t *testing.T) {
	b := newBed(t, never, 1)
	var asked atomic.Int32
	b.resuming(b.peers[0], func(p *part) {
		if asked.Add(1) == 4 {
			p.vanish()
		}
		p.back()
		p.in.ReadMsg(&jobpb.ToPeer{}) // until the stream is reopened
	})
	e := b.partedOn()
	l, other := e.peers.links[0], e.peers.links[1]
	other.peer = l.peer
	reopened := func(l *link, ended error) {
		e.disconnect(l, ended)
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
	reopened(l, nil)
	closed("the link had no stream", shared, false)
	reopened(l, &network.StreamError{Remote: true})
	closed("the peer has ended the link's last stream on it", shared, false)
	reopened(l, nil)
	closed("the link's last stream was on it", shared, true)
	shared = l.stream.Conn()
	reopened(other, nil)
	closed("the other link's first attempt on it has failed", shared, true)
}

// TestDisconnectedSubmitterStopsWaitingForEndedPeers: a disconnected submitter stops waiting, long
// before its deadline of an hour, when all its peers report that their parts have ended.
func TestDisconnectedSubmitterStopsWaitingForEndedPeers(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	e := b.partedOn()
	for _, m := range b.peers {
		b.resuming(m, func(p *part) { p.says("no such job here") })
	}
	b.agreeing(e)
	for e.views.inTouch() {
		select {
		case <-e.views.events.news:
		case <-time.After(eventTimeout):
			t.Fatal("the submitter has contact with no peer, but has not noticed this")
		}
	}
	for _, l := range e.peers.links {
		e.disconnect(l, nil)
	}
	var r *job.Result
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	for r == nil && ctx.Err() == nil {
		r = e.handleNext(ctx, nil)
	}
	if ctx.Err() != nil || r.Status != job.StatusLost {
		t.Errorf("result %+v, %v", r, ctx.Err())
	}
}

// asleep pretends that the process of e has not run for a long time.
func (e *execution) asleep() { e.lastUptime = uptime() - 100*e.j.s.cfg.Period }

// TestSuspendedSubmitterSetsAReconnectDeadline: after a pause, the submitter sets a deadline for
// peers to reconnect. It may never learn that it was out of touch with the view group.
func TestSuspendedSubmitterSetsAReconnectDeadline(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	e := b.partedOn()
	e.partition.active = false
	b.agreeing(e, b.peers...)
	e.asleep()
	if r := e.detectSleep(); r != nil || !e.partition.active {
		t.Fatalf("result %v, partitioned: %v", r, e.partition.active)
	}
	for limit := time.After(eventTimeout); e.deadlines.peers == nil; {
		select {
		case <-e.views.events.news:
			e.takeAgreed()
		case <-limit:
			t.Fatal("no deadline for silent peers was set")
		}
	}
}

// TestSuspendedSubmitterRestartsTheReconnectDeadline: the deadline for peers to reconnect passed
// while the submitter did not run, so it starts again.
func TestSuspendedSubmitterRestartsTheReconnectDeadline(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	e := b.partedOn()
	b.agreeing(e, b.peers...)
	over := make(chan time.Time, 1)
	over <- time.Now()
	e.deadlines.peers = over
	e.asleep()
	if r := e.handleNext(t.Context(), nil); r != nil {
		t.Errorf("result %+v", r)
	}
	for _, l := range e.peers.links {
		if l.err != nil || !l.session.disconnected {
			t.Errorf("%v: lost: %v, away: %v", l.processes, l.err, l.session.disconnected)
		}
	}
}

// TestPartitionHoldsChangesAndFailures: while partitioned, agreed changes wait. Failures that the
// detector finds out of touch wait in any case, and the user is told once.
func TestPartitionHoldsChangesAndFailures(t *testing.T) {
	var p partition
	changes := []viewgroup.Committed{{Change: view.Change{Process: proc(0, 1), To: view.Failed}}}
	if got := p.hold(changes); len(got) != 1 {
		t.Errorf("in touch, %d changes apply, want 1", len(got))
	}
	if !p.deferFailure(&link{}) || p.deferFailure(&link{}) {
		t.Error("not only the first failure is news")
	}
	if n := len(p.takeSilent()); n != 2 || p.takeSilent() != nil {
		t.Errorf("%d failures were deferred, want 2, once", n)
	}
	p.active = true
	if got := p.hold(changes); len(got) > 0 {
		t.Errorf("partitioned, %d changes apply", len(got))
	}
	if v := p.viewAfter(view.New(2, 2)); v.State(proc(0, 1)) != view.Failed {
		t.Errorf("after the changes, the view is %+v", v)
	}
	if got := p.takeHeld(); len(got) != 1 || len(p.takeHeld()) > 0 {
		t.Errorf("afterwards %d changes apply, want 1, once", len(got))
	}
}

// TestPartitionEndsWithoutPeersThatHaveFailed: a disconnected peer is not waited for if all its
// processes have failed in the view that results from the held changes. Any other peer is.
func TestPartitionEndsWithoutPeersThatHaveFailed(t *testing.T) {
	for to, waits := range map[view.State]bool{view.Failed: false, view.Finished: true} {
		b := newBed(t, never, 1, 1, 1, 1)
		e := b.partedOn()
		e.partition.hold([]viewgroup.Committed{{Change: view.Change{Process: other, To: to}}})
		l := e.peers.runsOn[other]
		l.session.disconnected = true
		if r := e.rejoin(); r != nil {
			t.Fatalf("%v: result %+v", to, r)
		}
		if e.partition.active != waits || (l.err == nil) != waits || (e.deadlines.peers != nil) != waits {
			t.Errorf("%v: partitioned %v, lost %v; want to wait: %v", to, e.partition.active, l.err, waits)
		}
		if got := e.state.View().State(other); (got == to) == waits {
			t.Errorf("%v: the process is %v", to, got)
		}
		e.detection.close()
	}
}

// TestReconnectDeadlineAppliesHeldChanges: the result of a job that is given up accounts for the
// changes that were held until then.
func TestReconnectDeadlineAppliesHeldChanges(t *testing.T) {
	e := newBed(t, never, 1, 1).partedOn()
	e.partition.hold([]viewgroup.Committed{{Change: view.Change{Process: other, To: view.Failed}}})
	if r := e.reconnectTimedOut(); r == nil || r.Status != job.StatusLost {
		t.Errorf("result %+v", r)
	}
	if e.state.View().State(other) != view.Failed {
		t.Error("a held change was lost")
	}
}

// TestAnswersToAnEarlierProcessAreIgnored: a peer repeats its answers to the process that began the
// job. Later ones would violate the protocol.
func TestAnswersToAnEarlierProcessAreIgnored(t *testing.T) {
	for name, m := range map[string]*jobpb.FromPeer{
		"prepared": {Body: &jobpb.FromPeer_Prepared{Prepared: &jobpb.Prepared{}}},
		"started":  startedMessage(""),
	} {
		e := newHearing(t)
		l := e.peers.links[0]
		l.session.earlier = 1
		for i, lost := range []bool{false, true} {
			if l.session.received++; e.handle(received{link: l, msg: m}) != nil || (l.err != nil) != lost {
				t.Errorf("%s, message %d: lost %v, want %v", name, i+1, l.err, lost)
			}
		}
	}
}
