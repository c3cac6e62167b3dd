package viewgroup

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestSilentSubmitterIsReplaced checks that a peer that follows the log replaces a silent submitter's
// peer, so that more losses are tolerated. When it is back, it is a member again, leads, and admits
// newcomers.
func TestSilentSubmitterIsReplaced(t *testing.T) {
	w := newWorld(t, 30, 4)
	w.ticks(3)
	w.side[0] = 1
	w.until("another peer votes in place of the lost one", w.votes(3, 1, 2, 3))
	w.crash(2)
	w.propose(1, 1, view.Failed)
	w.until("the other peers continue", w.failed(1, 1, 3))
	clear(w.side)
	w.until("the submitter's peer leads", func() bool { return w.members[0].Leads() && w.votes(1, 0, 1, 3)() })
	number := w.comes(0)
	w.until("a newcomer has joined", func() bool { return len(w.members[number].View().LiveReplicas(0)) == 2 })
}

// TestLostSubmitterIsNotWaitedFor loses the submitter's peer of three, and soon afterwards the one
// that no longer votes.
func TestLostSubmitterIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, 31, 3)
	w.ticks(3)
	w.crash(0)
	w.until("another one leads", func() bool { return w.members[1].Leads() || w.members[2].Leads() })
	for _, i := range []int{1, 2} { // both have heard of its new process
		w.carry(i, w.members[i].Gone(0))
	}
	leads, other := 1, 2
	if w.members[2].Leads() {
		leads, other = 2, 1
	}
	w.until("only the leader votes", w.votes(leads, leads))
	w.crash(other)
	w.propose(leads, other-1, view.Failed)
	w.until("the leader continues", w.failed(other-1, leads))
}

// TestFailedMemberIsReplacedAlthoughItAnswers replaces a member without live processes by one that has
// some, although it still answers.
func TestFailedMemberIsReplacedAlthoughItAnswers(t *testing.T) {
	w := newWorld(t, 32, 4)
	w.ticks(3)
	w.propose(0, 0, view.Failed)
	w.until("another peer votes in place of the lost one", w.votes(0, 0, 2, 3))
	w.ticks(3 * electionTicks)
	if !w.votes(0, 0, 2, 3)() {
		t.Errorf("and again: %s", w.state())
	}
}
