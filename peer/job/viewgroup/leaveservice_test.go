package viewgroup

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestLeavingPeersKeepTheMajority ends the job at two of three voters, and then the submitter, in the same second. The
// group continues.
func TestLeavingPeersKeepTheMajority(t *testing.T) {
	inGroup(t, 4, func(g *testGroup) {
		for i := range 4 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.groups[1].Leave()
		g.groups[2].Leave()
		time.Sleep(100 * time.Millisecond)
		g.leave(0)
		time.Sleep(leaveTicks * TickPeriod)
		g.wantAgreed(2, 3)
		if n := g.groups[3].Voters(); n != 1 || !g.groups[3].Votes(g.ids[3]) || g.groups[3].Contact() != InTouch {
			t.Errorf("%d voters, contact %v", n, g.groups[3].Contact())
		}
		for i := 1; i < 3; i++ {
			if left := g.services[i].leaving(); len(left) > 0 {
				t.Errorf("peer %d is still in the group", i)
			}
		}
	})
}

// TestCloseLetsALeaderReplaceAVoter ends two of three voters at the same time. Close waits until the submitter's peer
// has replaced the first one.
func TestCloseLetsALeaderReplaceAVoter(t *testing.T) {
	inGroup(t, 5, func(g *testGroup) {
		g.first = 4
		for i := range 4 {
			g.join(i)
		}
		time.Sleep(time.Second)
		for i := 1; i < 3; i++ {
			g.groups[i].Leave()
			g.groups[0].Gone(g.ids[i]) // the submitter notices the end of the job
			g.fail(0, i-1)
		}
		began := time.Now()
		done := make(chan bool)
		for i := 1; i < 3; i++ {
			go func() { g.leave(i); done <- true }()
		}
		<-done
		<-done
		if took := time.Since(began); took > 2*leaveTimeout {
			t.Errorf("Close took %v", took)
		}
		g.fail(0, 2)
		time.Sleep(3 * time.Second)
		g.wantAgreed(3, 0, 3)
	})
}

// TestPeerComesAgainWhileItLeaves checks that Join ends a group that this peer leaves for the same job.
func TestPeerComesAgainWhileItLeaves(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.leave(0)
		g.groups[1].Leave()
		time.Sleep(500 * time.Millisecond)
		if left := g.services[1].leaving(); len(left) != 1 {
			t.Errorf("%d groups are left, want 1", len(left))
		}
		g.views[1] = view.View{}
		g.join(1)
		if left := g.services[1].leaving(); len(left) != 0 {
			t.Error("the former group is still there")
		}
	})
}
