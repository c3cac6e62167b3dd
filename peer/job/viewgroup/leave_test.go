package viewgroup

import (
	"fmt"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// leader returns the member that leads, or -1.
func (w *world) leader() int {
	return slices.IndexFunc(w.members, func(m *Member) bool { return m != nil && m.Leads() })
}

// leave reports to member i that its peer is about to leave the job.
func (w *world) leave(i int) {
	w.Helper()
	w.carry(i, w.members[i].Leave())
}

// TestLeavingLeaderLeavesAMajority checks that a leader that is about to leave gives up its vote, although its
// process is still in the view. The submitter's peer is lost, so the group shrinks to one voter, which must be
// the peer that remains. The leader may have got the leadership back from a peer that leaves too.
func TestLeavingLeaderLeavesAMajority(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 3)
			w.ticks(3)
			w.crash(0)
			w.until("another peer leads", func() bool { return w.leader() > 0 })
			leaves := w.leader()
			remains := 3 - leaves
			w.members[leaves].resigned = seed%2 == 0
			w.leave(leaves)
			w.until("the leaving peer has no vote", func() bool { return !w.members[leaves].Votes(leaves) })
			w.crash(leaves)
			w.propose(remains, leaves-1, view.Failed)
			w.until("the remaining peer decides", w.failed(leaves-1, remains))
		})
	}
}

// TestLeavingMemberIsNotElected checks that a peer that is about to leave does not become leader after the loss of
// the leader. A learner replaces that one. A leader passes the leadership on even if the group need not change, also
// past another peer that leaves. It does so once.
func TestLeavingMemberIsNotElected(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 4)
			w.ticks(3)
			w.leave(2)
			w.crash(0)
			w.until("peer 3 votes", func() bool {
				if w.leader() == 2 {
					t.Fatal("the leaving peer was elected")
				}
				return w.members[1].Leads() && w.members[1].Votes(3) && !w.members[1].Votes(0)
			})
			w.leave(1)
			w.until("the peer that remains leads", func() bool { return w.leader() == 3 })
			w.leave(3)
			w.ticks(6 * electionTicks)
			leader := w.leader()
			w.ticks(6 * electionTicks)
			if l := w.leader(); l != leader {
				t.Errorf("all voters leave, and peers %d and %d lead in turn", leader, l)
			}
		})
	}
}

// TestLeavingMemberWithTheOnlyLogIsElected checks that a peer that is about to leave becomes leader if only its log
// has all that was agreed on. It passes the leadership on.
func TestLeavingMemberWithTheOnlyLogIsElected(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.ticks(3)
	w.side[1] = 1
	w.propose(0, 0, view.Finished)
	w.until("agreed without peer 1", func() bool { return w.members[2].View().Epoch == 2 })
	w.leave(2)
	w.crash(0)
	clear(w.side)
	w.until("the leaving peer leads", func() bool { return w.leader() == 2 })
	w.until("the other one leads", func() bool { return w.leader() == 1 })
	if e := w.members[1].View().Epoch; e != 2 {
		t.Errorf("epoch %d, want 2", e)
	}
}
