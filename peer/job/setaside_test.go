package job

import (
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestR4ProcessIsSetAsideAndReturns follows a process through the views, and checks that it becomes
// master only while it counts.
func TestR4ProcessIsSetAsideAndReturns(t *testing.T) {
	w, p := running(t, 1, 2), proc(0, 1)
	if s := w.Apply(Unresponsive{Process: proc(0, 0)}); s.View != nil {
		t.Fatalf("the master was set aside: %v", s.View)
	}
	s := w.Apply(Unresponsive{Process: p})
	if s.View == nil || s.View.AsideSince(p) != s.View.Epoch || len(s.Notes) > 0 {
		t.Fatalf("got %+v, want a view in which 0.1 is set aside", s)
	}
	if s := w.Apply(Ahead{Process: p}); s.View != nil {
		t.Errorf("0.1 became master: %v", s.View)
	}
	if s := w.Apply(UpToDate{Process: p, Since: s.View.Epoch + 1, Term: 1}); s.View != nil {
		t.Errorf("0.1 returned on a report about another epoch: %v", s.View)
	}
	if s := w.Apply(UpToDate{Process: p, Since: s.View.Epoch, Term: 1}); s.View == nil || !s.View.Counts(p) {
		t.Fatalf("0.1 did not return: %+v", s)
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "failed"}); s.Result != nil || !w.View().IsMaster(p) {
		t.Errorf("0.1 did not take over: %v, result %v", w.View(), s.Result)
	}
}

func TestNoProcessIsSetAsideBeforeTheJobBegins(t *testing.T) {
	w := newImmediate(1, 2)
	if s := w.Apply(Unresponsive{Process: proc(0, 1)}); s.View != nil {
		t.Errorf("0.1 was set aside: %v", s.View)
	}
}

// TestR7RankIsLostWithItsLastCountedReplica: the user is told why the replica that is set aside
// cannot take over.
func TestR7RankIsLostWithItsLastCountedReplica(t *testing.T) {
	w := running(t, 2, 2)
	w.Apply(Unresponsive{Process: proc(1, 1)})
	s := w.Apply(Lost{Processes: []view.Process{proc(1, 0)}, Why: "failed with its peer"})
	if s.Result == nil || s.Result.Status != StatusLost || !strings.Contains(s.Result.Message, "replica 0 failed with its peer, replica 1 did not answer when its master failed") {
		t.Errorf("got %+v", s.Result)
	}
}

// TestO2MasterDoesNotHandOverToAReplicaSetAside: a master does not hand over to a replica that is
// set aside, which could not take over.
func TestO2MasterDoesNotHandOverToAReplicaSetAside(t *testing.T) {
	w := running(t, 1, 2)
	since := w.Apply(Unresponsive{Process: proc(0, 1)}).View.Epoch
	if s := w.Apply(Leaves{Process: proc(0, 0)}); s.View != nil || s.Result != nil {
		t.Fatalf("the master has handed over to a replica that is set aside: %+v", s)
	}
	if s := w.Apply(UpToDate{Process: proc(0, 1), Since: since, Term: 1}); s.Result != nil || !w.View().IsMaster(proc(0, 1)) {
		t.Errorf("the master did not leave once the other counted again: %v", w.View())
	}
}

// TestO2MasterDoesNotHandOverToAReplicaAboutToBeSetAside: the request to set a replica aside is
// agreed on before the request to leave.
func TestO2MasterDoesNotHandOverToAReplicaAboutToBeSetAside(t *testing.T) {
	w := running(t, 1, 2)
	asked := w.State.Apply(Unresponsive{Process: proc(0, 1)}).Propose
	if s := w.Apply(Leaves{Process: proc(0, 0)}); s.View != nil {
		t.Fatalf("the master has handed over to a replica that is about to be set aside: %v", s.View)
	}
	if s := w.agree(Effects{Propose: asked}); s.Result != nil || s.View == nil || !s.View.IsMaster(proc(0, 0)) {
		t.Errorf("got %+v", s)
	}
}

// TestUpToDateReportBeforeItsViewIsKept: a process reports that it is up to date before this
// submitter knows that the process was set aside.
func TestUpToDateReportBeforeItsViewIsKept(t *testing.T) {
	w := running(t, 1, 2)
	asked := w.State.Apply(Unresponsive{Process: proc(0, 1)}).Propose
	next, _ := asked[0].Apply(w.View())
	if s := w.Apply(UpToDate{Process: proc(0, 1), Since: next.Epoch, Term: 1}); s.View != nil {
		t.Fatalf("got %v", s.View)
	}
	if w.agree(Effects{Propose: asked}); !w.View().Counts(proc(0, 1)) {
		t.Errorf("0.1 is still set aside: %v", w.View())
	}
}

// TestO4UpToDateReportOfAnUnknownProcessIsIgnored: a report about a process that has not joined is
// ignored.
func TestO4UpToDateReportOfAnUnknownProcessIsIgnored(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Apply(UpToDate{Process: proc(0, 2), Since: 1, Term: 1}); s.View != nil || s.Result != nil {
		t.Errorf("got %+v", s)
	}
}
