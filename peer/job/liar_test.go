package job

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// TestV4AnUninvitedProcessCrashesNothing: a process that this submitter did not ask for joins, and
// the submitter goes on.
func TestV4AnUninvitedProcessCrashesNothing(t *testing.T) {
	e := newHearing(t)
	uninvited := proc(0, 2)
	if r := e.applyAgreed(viewgroup.Committed{Change: viewgroup.Change{Process: uninvited, To: view.Live}, Epoch: 2}); r != nil {
		t.Fatal(r)
	}
	if e.reaches(uninvited) || e.peerOf(uninvited) == "" {
		t.Error("its peer is known")
	}
	if _, ok, _ := e.giver(0); ok {
		t.Error("it is asked for its files")
	}
	if e.owed() {
		t.Error("it owes an account")
	}
}

// TestV4APeerThatHidesAnExitIsGivenUp: a peer has its process finish on its own word, and does not
// say that it has ended. The other replica goes on.
func TestV4APeerThatHidesAnExitIsGivenUp(t *testing.T) {
	e := newHearing(t)
	e.j.s.waits.back = time.Hour // of what is tested, time is no part
	p := proc(1, 1)
	if r := e.applyAgreed(viewgroup.Committed{Change: viewgroup.Change{Process: p, To: view.Finished}, Epoch: 2}); r != nil {
		t.Fatal(r)
	}
	if e.owing == nil {
		t.Fatal("nobody waits for its peer to say so")
	}
	if r := e.demand(); r != nil {
		t.Fatal(r)
	}
	if e.reaches(p) || !e.reaches(proc(1, 0)) {
		t.Errorf("reached are the peer %v and the other's %v", e.reaches(p), e.reaches(proc(1, 0)))
	}
}

// TestV4TheUserHearsWhoHasFailedAPeer.
func TestV4TheUserHearsWhoHasFailedAPeer(t *testing.T) {
	w := newWatch(1, 3)
	p := proc(0, 1)
	w.Attribute(p, "failed, say the peers A, B")
	s := w.Committed(viewgroup.Change{Process: p, To: view.Failed})
	if len(s.Notes) != 1 || s.Notes[0] != "rank 0 replica 1 failed, say the peers A, B" {
		t.Errorf("notes %q", s.Notes)
	}
}
