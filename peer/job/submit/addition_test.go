package submit

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// These tests lose replicas while every free peer takes part in the job.

// askedToAdd waits until this part is asked to run q, too. If q joins elsewhere first, it returns
// nil.
func (p *part) askedToAdd(q view.Process) *jobpb.Add {
	return await(p, func(m *jobpb.ToPeer) *jobpb.ToPeer {
		if a := m.GetAdd(); a != nil && a.Process.View() == q {
			return m
		}
		if v, err := m.GetView().View(); m.GetView() != nil && err == nil && v.State(q) == view.Live {
			return m
		}
		return nil
	}).GetAdd()
}

// redeems takes the slot of a process that is to be added.
func (p *part) redeems(a *jobpb.Add) {
	var key reservation.Key
	copy(key[:], a.Key)
	if _, err := p.peer.slots.Redeem(key, p.spec.ID, p.spec.Submitter); err != nil {
		p.Errorf("redeem the key of %v: %v", a.Process, err)
	}
	p.more = append(p.more, key)
}

// added answers Add: the process runs, or it does not because of problem.
func (p *part) added(a *jobpb.Add, problem string) {
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Added{Added: &jobpb.Added{Process: a.Process, Key: a.Key, Error: problem}}})
}

// entersAdded sends the messages of q's peer until q, which is being added, has caught up.
func (p *part) entersAdded(a *jobpb.Add) {
	q := a.Process.View()
	p.redeems(a)
	if e := await(p, (*jobpb.ToPeer).GetEmitted); int(e.Rank) != q.Rank {
		p.Errorf("the peer got an Emitted message for rank %d", e.Rank)
	}
	p.added(a, "")
	p.initialized(q)
	row := await(p, func(m *jobpb.ToPeer) *jobpb.Member {
		if row := m.GetJoined(); row != nil && row.Process.View() == q {
			return row
		}
		return nil
	})
	if string(row.Peer) != string(p.peer.ID()) || len(row.Key) != proclink.KeySize {
		p.Errorf("joined by %v", row)
	}
	p.until(q, view.Live)
	p.caughtUp(q)
	p.processes = append(p.processes, q)
}

// endAll ends all processes of the part successfully.
func (p *part) endAll() {
	for _, q := range p.processes {
		p.ends(q)
	}
}

// crowded returns a job of two ranks with two replicas each, in which lost replicas are replaced.
func (b *bed) crowded() Request {
	req := b.request(2, 2)
	req.Heal = true
	return req
}

// apart gives the peers their script. Each peer has one slot when the job looks for peers, so that the job
// begins on as many of them as it has processes, and one more from then on.
func (b *bed) apart(script func(*part)) {
	for _, peer := range b.peers {
		peer.slots.Resize(1)
	}
	b.play(func(p *part) {
		p.peer.slots.Resize(2)
		script(p)
	})
}

// crowd gives the peers their script, as apart does. A peer whose part has ended refuses further requests,
// however long a test takes.
func (b *bed) crowd(script func(*part)) {
	b.apart(func(p *part) {
		if p.processes[0].Replica > 1 {
			p.prepared("no room")
			return
		}
		script(p)
	})
}

// TestLostReplicaIsReplacedOnAParticipatingPeer: a rank has lost a replica, and every free peer takes
// part in the job. The new replica goes to a peer that runs no replica of the rank. Then the other
// replica of the rank is lost, and the new one completes the rank (R7).
func TestLostReplicaIsReplacedOnAParticipatingPeer(t *testing.T) {
	b := newBed(t, never, 2, 2, 2, 2)
	watch, healed := untilHealed()
	added := proc(0, 2)
	var hosts atomic.Int32
	b.crowd(func(p *part) {
		p.start()
		p.enter()
		switch q := p.processes[0]; q {
		case proc(0, 0):
			p.vanish()
		case proc(0, 1):
			p.until(added, view.Live)
			<-healed
			p.vanish()
		default:
			if a := p.askedToAdd(added); a != nil {
				hosts.Add(1)
				p.entersAdded(a)
				p.until(proc(0, 1), view.Failed)
				p.ends(added, "a\n")
			}
			<-healed
			p.ends(q)
		}
	})
	o := b.run(b.crowded(), watch)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	if hosts.Load() != 1 {
		t.Errorf("%d peers have added it", hosts.Load())
	}
}

// TestTwoPeersReplaceEachOthersLostReplicas: each rank loses one of its two peers, and each remaining
// peer takes a replica of the other rank. No other slot is free then.
func TestTwoPeersReplaceEachOthersLostReplicas(t *testing.T) {
	b := newBed(t, never, 2, 2, 2, 2)
	var lost, whole sync.WaitGroup
	lost.Add(2)
	whole.Add(2)
	watch := func(e Event) error {
		if e.Kind == HealEvent && e.Placed != nil {
			whole.Done()
		}
		return nil
	}
	b.crowd(func(p *part) {
		p.start()
		p.enter()
		q := p.processes[0]
		if q.Replica == 0 {
			lost.Done()
			lost.Wait()
			p.vanish()
		}
		other := proc(1-q.Rank, 2)
		a := p.askedToAdd(other)
		if a == nil {
			p.Errorf("%v has joined elsewhere", other)
			return
		}
		p.entersAdded(a)
		whole.Wait()
		p.endAll()
	})
	o := b.run(b.crowded(), watch)
	o.want(job.StatusOK, "")
	o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	o.told("rank 1 has 2 replicas again (replica 2 on peer …")
}

// TestFailedAdditionIsRetriedAtAnotherPeer: a failed attempt to add a process is followed
// by one at the other peer, while the part of the first peer continues.
func TestFailedAdditionIsRetriedAtAnotherPeer(t *testing.T) {
	b := newBed(t, never, 2, 2, 2, 2)
	added := proc(0, 2)
	dropped := func(p *part, a *jobpb.Add) {
		if d := await(p, (*jobpb.ToPeer).GetDrop); d.Process.View() != added || !bytes.Equal(d.Key, a.Key) {
			p.Errorf("dropped is %v", d)
		}
	}
	for name, fails := range map[string]func(*part, *jobpb.Add){
		"it refuses":       func(p *part, a *jobpb.Add) { p.added(a, "no room") },
		"its process ends": func(p *part, a *jobpb.Add) { p.redeems(a); p.added(a, ""); p.exits(added, killed); dropped(p, a) },
		"its process aborts": func(p *part, a *jobpb.Add) {
			p.redeems(a)
			p.added(a, "")
			p.say(abortedMessage(added))
			dropped(p, a)
		},
		"it breaks the rules":           func(p *part, a *jobpb.Add) { p.redeems(a); p.added(a, ""); p.caughtUp(added); dropped(p, a) },
		"its peer is lost":              func(p *part, _ *jobpb.Add) { p.vanish() },
		"its peer is lost when it runs": func(p *part, a *jobpb.Add) { p.redeems(a); p.added(a, ""); p.vanish() },
	} {
		t.Run(name, func(t *testing.T) {
			watch, healed := untilHealed()
			var asked atomic.Int32
			b.in(t).crowd(func(p *part) {
				p.start()
				p.enter()
				q := p.processes[0]
				switch {
				case q == proc(0, 0):
					p.vanish()
				case q.Rank == 1:
					a := p.askedToAdd(added)
					switch {
					case a == nil:
					case asked.Add(1) == 1:
						fails(p, a)
						for _, key := range p.more { // as a peer that has dropped the process
							p.peer.slots.Release(key)
						}
						p.added(a, "it was dropped")
					default:
						p.entersAdded(a)
					}
				}
				<-healed
				p.endAll()
			})
			o := b.run(b.crowded(), watch)
			o.want(job.StatusOK, "")
			o.told("rank 0 has 2 replicas again")
		})
	}
	b.in(t)
}

func abortedMessage(q view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Aborted{Aborted: &jobpb.Aborted{Process: jobpb.FromProcess(q), Code: 1}}}
}

// TestS4EndDuringAnAdditionReleasesEverything covers peers that have and have not redeemed
// the slot.
func TestS4EndDuringAnAdditionReleasesEverything(t *testing.T) {
	b := newBed(t, never, 2, 2, 2, 2)
	for name, took := range map[string]bool{"asked": false, "started": true} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			b.in(t).crowd(func(p *part) {
				p.start()
				p.enter()
				switch q := p.processes[0]; {
				case q == proc(0, 0):
					p.vanish()
				case q.Rank == 1:
					if a := p.askedToAdd(proc(0, 2)); took {
						p.redeems(a)
						p.added(a, "")
					}
					end()
				}
			})
			b.runUntil(ctx, b.crowded(), nil).want(job.StatusCancelled, "cancelled")
		})
	}
	b.in(t)
}

// TestNonParticipatingPeersArePreferred: a peer of the job runs one more process only if no other
// peer has a slot.
func TestNonParticipatingPeersArePreferred(t *testing.T) {
	b := newBed(t, never, 2, 2, 2, 2, 2)
	watch, healed := untilHealed()
	b.apart(func(p *part) {
		p.start()
		p.enter()
		switch q := p.processes[0]; q {
		case proc(0, 0):
			p.vanish()
		case proc(0, 2):
			p.caughtUp(q)
			<-healed
			p.ends(q)
		default:
			<-healed
			p.ends(q)
		}
	})
	o := b.run(b.crowded(), watch)
	o.want(job.StatusOK, "")
	o.told("rank 0 has 2 replicas again (replica 2 on peer …")
}

// TestPeerAcceptsOneMoreProcess: a peer that already runs a rank, is leaving, or has an unanswered
// request does not get one more process.
func TestPeerAcceptsOneMoreProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(e *execution, l *link)
		want  bool
	}{
		"it runs another rank": {func(*execution, *link) {}, true},
		"it runs the rank":     {func(_ *execution, l *link) { l.processes = append(l.processes, proc(0, 1)) }, false},
		"it is about to":       {func(_ *execution, l *link) { l.processes = append(l.processes, proc(0, 7)) }, false},
		"it is lost":           {func(_ *execution, l *link) { l.err = errSilent }, false},
		"it is away":           {func(_ *execution, l *link) { l.session.disconnected = true }, false},
		"it has been retired":  {func(_ *execution, l *link) { l.retired = true }, false},
		"it adds one for it": {func(_ *execution, l *link) {
			l.added[proc(0, 2)] = &recruit{process: proc(0, 2), phase: recruitEntering}
		}, false},
		"a request is unanswered": {func(_ *execution, l *link) { l.added[proc(2, 2)] = &recruit{process: proc(2, 2)} }, false},
		"it adds another": {func(_ *execution, l *link) {
			l.added[proc(2, 2)] = &recruit{process: proc(2, 2), phase: recruitEntering}
		}, true},
		"it is dropping it":    {func(_ *execution, l *link) { l.dropped[proc(0, 2)] = reservation.Key{} }, false},
		"its owner wants it":   {func(e *execution, l *link) { e.state.Apply(job.Leaves{Process: proc(1, 0)}) }, false},
		"all there has failed": {func(e *execution, l *link) { lose(e.state, proc(1, 0)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := ofThreeRanks()
			l := newLink(reservation.Placement{}, proc(1, 0))
			defer l.cancel()
			tt.spoil(e, l)
			if got := e.recruitment.canRun(l, proc(0, 2)); got != tt.want {
				t.Errorf("takes it: %v, want %v", got, tt.want)
			}
		})
	}
}

// ofThreeRanks returns a job of three ranks without peers.
func ofThreeRanks() *execution {
	e := &execution{j: &run{}, state: running(3, 2), peers: &membership{runsOn: make(map[view.Process]*link)}, views: &viewGroup{}, collector: &collector{}}
	e.recruitment = &recruitment{j: e.j, state: e.state, peers: e.peers, views: e.views, unused: make(map[p2ppeer.ID]reservation.Placement)}
	return e
}

// adding returns a job of three ranks with a link on which a process is being added to rank 0.
func adding(t *testing.T, phase recruitPhase) (*execution, *link, *recruit) {
	t.Helper()
	l := newLink(reservation.Placement{}, proc(1, 0))
	t.Cleanup(l.cancel)
	r := &recruit{process: proc(0, 2), phase: phase, slots: reservation.Placement{Key: reservation.Key{2}}}
	l.added[r.process] = r
	return ofThreeRanks(), l, r
}

func addedMessage(q view.Process, key reservation.Key, problem string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Added{Added: &jobpb.Added{Process: jobpb.FromProcess(q), Key: key[:], Error: problem}}}
}

// TestAdditionWaitsForInputFiles: fetching input files may take longer than a peer may be
// silent.
func TestAdditionWaitsForInputFiles(t *testing.T) {
	for name, resumed := range map[string]bool{"begun here": false, "attached": true} {
		e, l, r := adding(t, recruitStaging)
		e.j.resumed = resumed
		e.handle(received{link: l, wire: l.wire, msg: &jobpb.FromPeer{Body: &jobpb.FromPeer_Staging{Staging: &jobpb.Staging{}}}})
		if r.heard.IsZero() {
			t.Errorf("%s: its peer counts as silent", name)
		}
	}
}

// TestV3StaleDropAnswerIsNotTakenForTheCurrentAttempt: a reconnected peer answers Drop as
// often as it has received it. A confusion of the attempts would make an honest peer appear to
// break the protocol.
func TestV3StaleDropAnswerIsNotTakenForTheCurrentAttempt(t *testing.T) {
	e, l, r := adding(t, recruitStaging)
	first := reservation.Key{1}
	l.dropped[r.process] = first
	for range 2 {
		e.handle(received{link: l, wire: l.wire, msg: addedMessage(r.process, first, "it was dropped")})
		if _, left := l.dropped[r.process]; left || l.added[r.process] != r || l.err != nil {
			t.Fatalf("dropped %v, added %v, lost: %v", l.dropped, l.added, l.err)
		}
	}
	e.handle(received{link: l, wire: l.wire, msg: addedMessage(r.process, r.slots.Key, "")})
	if r.phase != recruitEntering {
		t.Error("the answer about this attempt has no effect")
	}
}

// TestS4ResumedSubmitterDropsUnknownProcesses: the previous submitter process has added a process
// and not let it join. No submitter process will let it join.
func TestS4ResumedSubmitterDropsUnknownProcesses(t *testing.T) {
	key := reservation.Key{1}
	for _, kept := range []bool{false, true} {
		e, l, r := adding(t, recruitStaging)
		delete(l.added, r.process)
		e.j.resumed = true
		if kept {
			e.peers.runsOn[r.process] = l
		}
		e.handle(received{link: l, wire: l.wire, msg: addedMessage(r.process, key, "")})
		drops := 0
		for _, m := range l.out.take() {
			if d := m.GetDrop(); d != nil && bytes.Equal(d.Key, key[:]) {
				drops++
			}
		}
		if want := map[bool]int{false: 1, true: 0}[kept]; drops != want {
			t.Errorf("kept: %v: dropped %d times, want %d", kept, drops, want)
		}
		e.handle(received{link: l, wire: l.wire, msg: addedMessage(r.process, key, "it was dropped")})
		if len(l.dropped) > 0 || l.err != nil {
			t.Errorf("kept: %v: dropped %v, lost: %v", kept, l.dropped, l.err)
		}
	}
}
