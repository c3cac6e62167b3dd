package submit

import (
	"context"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// cutOffAtTheEnd returns a partitioned job of which all processes have finished in the view, and whose output the user
// does not have yet. The submitter is cut off from all peers.
func cutOffAtTheEnd(t *testing.T) *execution {
	b := newBed(t, never, 1, 1, 1, 1)
	b.submitter.waits.reconnect = 100 * time.Millisecond
	e := b.partedOn()
	b.agreeing(e) // the submitter alone
	for _, p := range e.state.View().Processes() {
		e.state.Apply(job.Committed{Change: change(p, view.Finished)})
	}
	for !e.views.cutOff() {
		select {
		case <-e.views.events.news:
		case <-time.After(eventTimeout):
			t.Fatal("the submitter is not cut off")
		}
	}
	e.deadlines.reconnect, e.lastUptime = time.After(time.Hour), uptime()
	e.pulseTicks = time.Tick(50 * time.Millisecond)
	return e
}

// wantWaiting handles events for longer than late peers get, and checks that the job waits.
func (e *execution) wantWaiting(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*e.j.s.waits.reconnect)
	defer cancel()
	for ctx.Err() == nil {
		if r := e.handleNext(t.Context(), ctx.Done()); r != nil {
			t.Fatalf("result %v", r)
		}
	}
	if !e.partition.active || e.deadlines.reconnect == nil {
		t.Errorf("partition %v, with a deadline %v", e.partition.active, e.deadlines.reconnect != nil)
	}
	for _, l := range e.peers.links {
		if l.err != nil {
			t.Errorf("the peer of %v is given up: %v", l.processes, l.err)
		}
	}
}

// TestSubmitterCutOffAtTheEndWaits checks that a submitter that is cut off after the end of all processes waits for
// the peers as long as at any other time: their output may still be on its way.
func TestSubmitterCutOffAtTheEndWaits(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	e := cutOffAtTheEnd(t)
	for _, l := range e.peers.links {
		e.disconnect(l, nil)
	}
	e.wantWaiting(t)
}

// TestSubmitterCutOffAtTheEndFindsOutFirst checks the same for a submitter that notices it before the detector has
// failed a peer.
func TestSubmitterCutOffAtTheEndFindsOutFirst(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	e := cutOffAtTheEnd(t)
	e.partition.active, e.deadlines.reconnect = false, nil
	if r := e.takeAgreed(); r != nil || !e.partition.active {
		t.Fatalf("result %v, partition %v", r, e.partition.active)
	}
	if r := e.handleNext(t.Context(), nil); r != nil || !e.partition.active {
		t.Fatalf("result %v, partition %v after the next event", r, e.partition.active)
	}
	for _, l := range e.peers.links {
		if r := e.handleFailure(l); r != nil {
			t.Fatalf("result %v", r)
		}
	}
	e.wantWaiting(t)
}

// TestV3ResumedSubmitterIsPatient checks that a process that has resumed the job gives peers with live processes more
// time: it may have to look up their addresses.
func TestV3ResumedSubmitterIsPatient(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	e := b.partedOn()
	e.partition.patient = true
	failed := e.peers.links[0]
	e.state.Apply(job.Committed{Change: change(failed.processes[0], view.Failed)})
	for _, l := range e.peers.links {
		l.session.disconnected = true
	}
	if r := e.dropLatePeers(); r != nil {
		t.Fatalf("result %v", r)
	}
	for _, l := range e.peers.links {
		if lost := l.err != nil; lost != (l == failed) {
			t.Errorf("the peer of %v is given up: %v", l.processes, l.err)
		}
	}
	if e.deadlines.peers == nil || e.partition.patient {
		t.Errorf("deadline %v, patient %v", e.deadlines.peers != nil, e.partition.patient)
	}
}
