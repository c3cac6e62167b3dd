package launch

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// TestEndedPeerKeepsItsVote ends the job at one of three voters while the submitter is silent. Nothing of the job is left
// at that peer, but it votes until the group of the other peer does without it and without the submitter.
func TestEndedPeerKeepsItsVote(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startKept(t, "sleep") // the submitter is a voter, and sends nothing
	j.begun()
	remains, ends := j.hosted(0), j.hosted(1)
	ends.do(func() {
		ends.cutShort(errDiskFull)
		ends.reclaim.stopBy = time.Now().Add(-dismissTimeout) // the submitter has had time to react
	})
	j.peers[1].checkNothingLeft(t)
	group := answered(t, remains, func() *viewgroup.Group { return remains.views.group })
	j.eventually("the other peer alone votes", func() bool { return group.Voters() == 1 && group.Votes(j.peers[0].ID()) })
	if v := answered(t, remains, func() view.View { return remains.views.current }); v.Has(view.Process{Replica: 1}) {
		t.Errorf("the view is %v", v)
	}
	if c := group.Contact(); c != viewgroup.InTouch {
		t.Errorf("contact %v", c)
	}
	j.links, j.peers = j.links[:1], j.peers[:1]
	j.stop()
}
