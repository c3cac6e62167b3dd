package viewgroup

import (
	"reflect"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestResumedSubmitterFollowsTheLog kills the submitter's process twice, at different times. Each time the next
// one gets all views, takes the place of the former one and leads.
func TestResumedSubmitterFollowsTheLog(t *testing.T) {
	for seed := range uint64(8) {
		const peers = 5
		w := newWorld(t, 100+seed, peers)
		w.ticks(3)
		for round, rank := range []int{0, 1} {
			w.propose(2, rank, view.Finished)
			w.ticks(int(seed) * (round + 1))
			w.crash(w.submitter())
			w.ticks(int(seed) * cutOffTicks / 4)
			k := w.resumes(peers)
			if c := w.members[k].Contact(); c != Absent {
				t.Errorf("contact %v of a process that has heard nobody", c)
			}
			w.until("the new process has the log, and leads", func() bool {
				m := w.members[k]
				return m.Leads() && m.Contact() == InTouch && m.View().State(view.Process{Rank: rank}) == view.Finished
			})
			w.propose(k, rank+2, view.Failed)
			w.until("the others follow", w.failed(rank+2, 3, 4))
		}
	}
}

// TestResumedSubmitterGetsTheLogOfTheLastPeer loses the majority after the end of all processes. The peer that is left
// hands on the log, and the new process does not take that for contact with the majority.
func TestResumedSubmitterGetsTheLogOfTheLastPeer(t *testing.T) {
	const peers = 3
	w := newWorld(t, 110, peers)
	w.ticks(3)
	w.crash(submitterPeer)
	w.until("another one leads", func() bool { return w.members[1].Leads() || w.members[2].Leads() })
	w.propose(1, 0, view.Finished)
	w.propose(1, 1, view.Finished)
	w.until("both have ended", func() bool { return w.members[1].View().Epoch == 3 && w.members[2].View().Epoch == 3 })
	leads, left := 1, 2
	if w.members[2].Leads() {
		leads, left = 2, 1
	}
	w.until("only the leader votes", w.votes(left, leads))
	w.crash(leads)
	w.ticks(3 * cutOffTicks)
	k := w.resumes(peers)
	m := w.members[k]
	w.until("the new process has the log", func() bool { return m.View().Epoch == 3 })
	for range 2 {
		if c := m.Contact(); c == InTouch {
			t.Errorf("contact %v without a majority", c)
		}
		w.ticks(cutOffTicks)
	}
	elapsed := func() int64 {
		return reflect.ValueOf(m.node).Elem().FieldByName("raft").Elem().FieldByName("electionElapsed").Int()
	}
	before, again := elapsed(), w.members[left].message(k)
	if !w.members[left].proofs.relay(again, 1) {
		t.Fatal("the last peer relays nothing")
	}
	if _, err := m.Step(left, again); err != nil {
		t.Fatal(err)
	}
	if after := elapsed(); after < before {
		t.Errorf("entries that are known count as a sign of life of the leader: %d, before %d", after, before)
	}
}
