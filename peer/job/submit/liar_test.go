package submit

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// TestV4UninvitedProcessIsTolerated: a process that this submitter did not recruit joins, and
// the submitter continues.
func TestV4UninvitedProcessIsTolerated(t *testing.T) {
	e := newHearing(t)
	uninvited := proc(0, 2)
	if r := e.applyAgreed(viewgroup.Committed{Change: view.Change{Process: uninvited, To: view.Live}, Epoch: 2}); r != nil {
		t.Fatal(r)
	}
	if e.peers.reaches(uninvited) || e.peers.peerOf(uninvited) == "" {
		t.Error("the peer of the uninvited process is known")
	}
	if _, ok, _ := e.collector.fileSource(0); ok {
		t.Error("the uninvited process is asked for its files")
	}
	if slices.Contains(e.confirmation.confirmingReplicas(), uninvited) {
		t.Error("the uninvited process owes an account")
	}
}

// TestV4PeerThatHidesAnExitIsFailed: a peer requests that its process finish, and does not report
// the exit. The other replica continues.
func TestV4PeerThatHidesAnExitIsFailed(t *testing.T) {
	e := newHearing(t)
	e.j.s.waits.reconnect = time.Hour // the test does not depend on time
	p := proc(1, 1)
	if r := e.applyAgreed(viewgroup.Committed{Change: view.Change{Process: p, To: view.Finished}, Epoch: 2}); r != nil {
		t.Fatal(r)
	}
	if e.deadlines.exits == nil {
		t.Fatal("no deadline for the report of the exit was set")
	}
	if r := e.loseUnreported(); r != nil {
		t.Fatal(r)
	}
	if e.peers.reaches(p) || !e.peers.reaches(proc(1, 0)) {
		t.Errorf("reached are the peer %v and the other's %v", e.peers.reaches(p), e.peers.reaches(proc(1, 0)))
	}
}

// TestV4PeerThatWithholdsOutputIsFailed: the output leader of a rank has ended, and its peer
// sends no more of its output. The other replica becomes output leader. A peer is not blamed while
// the user has yet to read some of its output.
func TestV4PeerThatWithholdsOutputIsFailed(t *testing.T) {
	e := newHearing(t)
	e.j.s.waits.output, e.j.s.waits.silence = time.Minute, time.Hour
	p, other := proc(1, 0), proc(1, 1)
	e.state.Apply(job.Initialized{Process: p})
	e.apply(e.state.Apply(job.Exited{Process: p, Exit: wellEnded}))
	waited := func(d time.Duration) {
		t.Helper()
		e.outputs.withheld[p] = e.outputs.withheld[p].Add(-d)
		if r := e.loseWithholding(); r != nil {
			t.Fatal(r)
		}
	}
	if e.loseWithholding(); len(e.outputs.withheld) != 1 {
		t.Fatalf("output is expected of %v, want %v", e.outputs.withheld, p)
	}
	if waited(59 * time.Second); !e.peers.reaches(p) {
		t.Fatal("the peer was given up early")
	}
	e.outputs.emission.Add(p, job.Stdout, 0, []byte("unread\n"))
	if waited(2 * time.Second); !e.peers.reaches(p) {
		t.Fatal("the peer was given up while the user had output to read")
	}
	e.outputs.shown(map[job.Source]uint64{{Rank: 1, Stream: job.Stdout}: 1})
	e.loseWithholding()
	if waited(time.Minute); e.peers.reaches(p) || !e.peers.reaches(other) {
		t.Errorf("reached are the peer %v and the other's %v", e.peers.reaches(p), e.peers.reaches(other))
	}
	if s, _ := e.state.View().OutputLeader(1); s != other {
		t.Errorf("the output leader is %v, want %v", s, other)
	}
}
