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
				t.Errorf("contact %v of a process that has heard no other peer", c)
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
// relays the log, and the new process does not take that for contact with the majority.
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
	if c := m.Contact(); c == InTouch {
		t.Errorf("contact %v as soon as one peer is heard", c)
	}
	w.ticks(cutOffTicks)
	if c := m.Contact(); c == InTouch {
		t.Errorf("contact %v without a majority", c)
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

// TestResumedSubmitterReplacesALivingProcess starts a new process of the submitter while the former one leads. The
// former one has begun the term by its own decision, which the new process has to believe before it can order an
// election.
func TestResumedSubmitterReplacesALivingProcess(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, 200+seed, 5)
		w.ticks(3)
		if seed%2 == 1 { // the leadership returns to the submitter's peer, which ends the term of another leader
			w.side[submitterPeer] = 1
			w.ticks(3 * electionTicks)
			clear(w.side)
			w.until("the submitter's peer leads again", w.members[submitterPeer].Leads)
		}
		k := w.resumes(5)
		w.until("the new process knows the term", func() bool { return w.members[k].term() == w.members[1].term() })
		if !w.members[submitterPeer].Leads() {
			t.Error("the former process does not lead any more")
		}
		w.until("the new process leads", w.members[k].Leads)
		w.propose(k, 0, view.Failed)
		w.until("all agree", w.failed(0, 1, 2, 3, 4, k))
	}
}

// TestResumedSubmitterOfManyPeersIsAdmittedSoon checks that the number of peers does not delay a new process of the
// submitter if no peer can relay entries to it, from which it would learn who leads. It asks the voters in every round.
func TestResumedSubmitterOfManyPeersIsAdmittedSoon(t *testing.T) {
	const peers = 120
	w := newWorld(t, 151, peers)
	w.relayless = true
	w.ticks(3)
	w.members[submitterPeer].node.TransferLeader(liar + 1)
	w.carry(submitterPeer, w.members[submitterPeer].ready())
	w.until("another one leads", w.members[liar].Leads)
	w.crash(submitterPeer)
	k := w.resumes(peers)
	if n := w.until("the new process is in touch", func() bool { return w.members[k].Contact() == InTouch }); n > 2*heartbeatTicks {
		t.Errorf("after %d ticks", n)
	}
}

// TestV4PeerWithTheNumberOfASubmitterHasNotItsRights introduces a new process of the submitter to some members under the
// number of a peer that its former process had introduced. Once the log has that peer, they take it for no submitter.
func TestV4PeerWithTheNumberOfASubmitterHasNotItsRights(t *testing.T) {
	w := newWorld(t, 160, 4)
	w.ticks(3)
	w.members[submitterPeer].node.TransferLeader(2)
	w.carry(submitterPeer, w.members[submitterPeer].ready())
	w.until("another one leads", w.members[1].Leads)
	w.crash(submitterPeer)
	number := w.comesAs(view.Process{Replica: 1}, 1)
	for _, i := range []int{2, 3} {
		w.carry(i, w.members[i].Introduce(invite(Newcomer{Peer: number, ID: idOf(submitterPeer), Process: NoProcess})))
		if got := w.members[i].proofs.submitter; got != number {
			t.Fatalf("peer %d takes %d for the submitter's peer", i, got)
		}
	}
	w.until("the peer has come", func() bool { return len(w.members[3].View().LiveReplicas(0)) == 2 })
	for i, m := range w.members {
		if m != nil && m.proofs.submitter != submitterPeer {
			t.Errorf("peer %d takes %d for the submitter's peer", i, m.proofs.submitter)
		}
	}
}

// TestResumedSubmitterIsNoVoterTooMany cuts a new process of the submitter off as soon as it can vote. By then
// its former number no longer votes, so the others continue even after another one has left.
func TestResumedSubmitterIsNoVoterTooMany(t *testing.T) {
	for seed := range uint64(10) {
		const peers = 4
		w := newWorld(t, 150+seed, peers)
		w.ticks(3)
		w.crash(submitterPeer)
		w.until("another one leads", func() bool { return w.members[1].Leads() || w.members[2].Leads() })
		k := w.resumes(peers)
		w.until("the new process votes", func() bool { return w.members[1].Votes(k) && w.members[2].Votes(k) })
		if w.members[1].Votes(submitterPeer) || w.members[2].Votes(submitterPeer) {
			t.Errorf("its former number votes beside it: %s", w.state())
		}
		w.side[k] = 1
		w.propose(1, 2, view.Failed)
		w.until("the others continue", w.failed(2, 1, 2))
	}
}
