package submit

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestDivergenceReportBeforeTheReceiverJoinsIsKept: the reporting process received the view
// in which the receiver joined before the submitter did.
func TestDivergenceReportBeforeTheReceiverJoinsIsKept(t *testing.T) {
	e := newHearing(t)
	late := view.Change{Process: proc(1, 2), To: view.Live}
	foretell := func(said view.Process, d protection.Divergence) *job.Result {
		return e.handle(received{link: e.peers.runsOn[said], msg: &jobpb.FromPeer{Body: &jobpb.FromPeer_Diverged{Diverged: jobpb.FromDivergence(said, d)}}})
	}
	if r := foretell(proc(0, 1), protection.Divergence{Receiver: late.Process, Context: 256, Seq: 1, Produced: 7, Received: 5}); r != nil {
		t.Fatal(r)
	}
	for i := range uint64(2 * job.MaxReports) { // a liar's reports do not use up the limit of others
		if r := foretell(proc(0, 0), protection.Divergence{Receiver: proc(0, 3), Seq: i}); r != nil {
			t.Fatal(r)
		}
	}
	if kept := len(e.earlyReports[proc(0, 0)]); kept != job.MaxReports {
		t.Errorf("%d words are kept of one, want %d", kept, job.MaxReports)
	}
	e.peers.addPlaceholder(late)
	if r := e.apply(e.state.Apply(job.Committed{Change: late})); r == nil || r.Status != job.StatusDiverged {
		t.Errorf("once it has joined: %+v", r)
	}
}
