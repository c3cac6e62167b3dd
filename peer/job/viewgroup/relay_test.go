package viewgroup

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// keptOut returns a world in which the liar leads and sends the submitter's peer nothing, after that was cut
// off for a while. The liar and peers 2 and 3 run processes.
func keptOut(t *testing.T, seed uint64, ticks int) *world {
	t.Helper()
	w := newWorld(t, seed, 4)
	w.ticks(3)
	w.until("the liar leads", func() bool {
		w.members[submitterPeer].node.TransferLeader(liar + 1)
		w.carry(submitterPeer, w.members[submitterPeer].ready())
		return w.members[liar].Leads()
	})
	w.liar = liar
	w.drops = func(to int, _ *raftpb.Message) bool { return to == submitterPeer }
	w.propose(liar, 1, view.Failed)
	w.side[submitterPeer] = 1
	w.ticks(ticks)
	clear(w.side)
	return w
}

// TestV4SubmitterIsNotKeptOut checks that the submitter's peer gets the log from the other voters, and leads
// again, if the leader sends it nothing.
func TestV4SubmitterIsNotKeptOut(t *testing.T) {
	for seed := range uint64(10) {
		w := keptOut(t, 60+seed, electionTicks)
		w.wantSubmitterBack()
	}
}

// wantSubmitterBack waits until the submitter's peer, which was kept out, leads, and the honest peers follow.
func (w *world) wantSubmitterBack() {
	w.Helper()
	w.until("the submitter's peer has the view, and leads", func() bool {
		m := w.members[submitterPeer]
		return w.failed(1, submitterPeer)() && m.Leads() && m.Contact() == InTouch
	})
	w.propose(submitterPeer, 2, view.Finished)
	w.until("the others follow", func() bool {
		return w.members[2].View().State(view.Process{Rank: 2}) == view.Finished && w.members[3].View().State(view.Process{Rank: 2}) == view.Finished
	})
}

// TestV4HeartbeatsAloneDoNotKeepTheSubmitterOut checks the same for a leader that sends the submitter's peer
// heartbeats, and no entries.
func TestV4HeartbeatsAloneDoNotKeepTheSubmitterOut(t *testing.T) {
	w := keptOut(t, 90, electionTicks)
	w.drops = func(to int, r *raftpb.Message) bool { return to == submitterPeer && r.GetType() == raftpb.MsgApp }
	w.until("the submitter's peer has the view, and leads", func() bool {
		return w.failed(1, submitterPeer)() && w.members[submitterPeer].Leads()
	})
}

// TestV4LostRequestForVotesDoesNotKeepTheSubmitterOut checks the same if the requests of the submitter's peer for
// votes are lost, so that only this peer is in its term.
func TestV4LostRequestForVotesDoesNotKeepTheSubmitterOut(t *testing.T) {
	w := keptOut(t, 91, electionTicks)
	m := w.members[submitterPeer]
	w.until("it has the entries", func() bool { return len(m.proofs.log) == len(w.members[2].proofs.log) })
	m.attempt(func() error {
		return m.node.Step(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: new(uint64(liar) + 1), To: new(m.id()), Term: new(m.term())})
	})
	m.ready() // its messages are lost
	if m.term() == w.members[2].term() {
		t.Fatalf("term %d, as that of the others", m.term())
	}
	w.until("it leads", m.Leads)
}

// TestV4RelayedEntriesAreNotMixedWithOthers checks that the submitter's peer finds a leader that has sent it a
// different entry than the other voters.
func TestV4RelayedEntriesAreNotMixedWithOthers(t *testing.T) {
	w := keptOut(t, 92, electionTicks)
	m, led := w.members[submitterPeer], w.members[liar]
	for w.side[submitterPeer] = 1; !m.missesLeader(); w.tick() {
	}
	relayed, r := w.members[2].message(submitterPeer), &raftpb.Message{}
	if !w.members[2].proofs.relay(relayed, m.node.BasicStatus().GetCommit()) {
		t.Fatal("nothing is relayed")
	}
	if err := proto.Unmarshal(relayed.GetRaft(), r); err != nil {
		t.Fatal(err)
	}
	told := proto.CloneOf(r)
	told.Entries, told.Commit = told.Entries[:1], told.Index
	last := told.GetEntries()[0]
	last.Data = signed(liar, fails(liar-1)).encode()
	msg := led.lies(submitterPeer, told)
	msg.Previous, msg.Starts, msg.Votes = relayed.GetPrevious(), relayed.GetStarts(), relayed.GetVotes()
	led.signsEntries(m, msg)
	if _, err := m.Step(liar, msg); err != nil || m.proofs.termAt(last.GetIndex()) != last.GetTerm() {
		t.Fatalf("entry %d is not accepted: %v", last.GetIndex(), err)
	}
	w.ticks(absentTicks + 1)
	if _, err := m.Step(2, relayed); err != nil || m.Err() == nil || m.Err().Error() != new(Member).blamed() {
		t.Errorf("the leader is not found: %v, %v", err, m.Err())
	}
}

// TestV4SubmitterFollowsWithoutAVote checks that the submitter's peer gets the log from the voters even after it
// has lost its vote.
func TestV4SubmitterFollowsWithoutAVote(t *testing.T) {
	w := keptOut(t, 75, cutOffTicks+2*electionTicks)
	if w.members[2].Votes(submitterPeer) {
		t.Fatal("the submitter's peer votes")
	}
	w.until("the submitter's peer has the view", func() bool {
		return w.failed(1, submitterPeer)() && w.members[submitterPeer].Contact() == InTouch
	})
	for range 2 * cutOffTicks {
		if w.tick(); w.members[submitterPeer].Contact() == CutOff {
			t.Fatal("the submitter's peer is cut off")
		}
	}
	w.propose(2, 2, view.Finished)
	w.until("the submitter's peer gets the next view", func() bool {
		return w.members[submitterPeer].View().State(view.Process{Rank: 2}) == view.Finished
	})
}

// TestV4SubmitterOrdersAnElection checks that a leader does not keep the submitter's peer out that sends it nothing,
// whatever else the leader does: it takes the vote of that peer, or does not sign what others could relay.
func TestV4SubmitterOrdersAnElection(t *testing.T) {
	for name, c := range map[string]struct {
		ticks int
		hides bool
	}{"takes its vote": {cutOffTicks + 2*electionTicks, false}, "signs nothing": {electionTicks, true}, "both": {cutOffTicks + 2*electionTicks, true}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				w := keptOut(t, 120+seed, c.ticks)
				w.hides = c.hides
				w.wantSubmitterBack()
			}
		})
	}
}

// TestV4NewProcessIsAdmittedAgainstTheLeader checks that a leader does not keep a new process of the submitter out by
// not admitting it.
func TestV4NewProcessIsAdmittedAgainstTheLeader(t *testing.T) {
	for seed := range uint64(5) {
		w := withLiar(t, 130+seed, 5)
		w.bars = true
		k := w.resumes(5)
		w.drops = func(to int, _ *raftpb.Message) bool { return to == k }
		w.until("the new process leads", func() bool { return w.members[k].Leads() && w.members[k].Contact() == InTouch })
		w.propose(k, 2, view.Failed)
		w.until("the others follow", w.failed(2, 2, 3, 4))
	}
}

// TestV4NewProcessIsAdmittedAgainstAChosenLeader checks the same for a leader to which another one has handed over, and
// that shows no other peer what it has signed. A new process cannot check the permission, since it does not know who led.
func TestV4NewProcessIsAdmittedAgainstAChosenLeader(t *testing.T) {
	w := newWorld(t, 135, 5)
	w.liar, w.hides, w.bars = liar, true, true
	w.ticks(3)
	for from, to := range []int{2: liar, submitterPeer: 2} {
		if to > 0 {
			w.members[from].node.TransferLeader(uint64(to) + 1)
			w.carry(from, w.members[from].ready())
			w.until("the next one leads", w.members[to].Leads)
		}
	}
	w.crash(submitterPeer)
	w.ticks(cutOffTicks)
	k := w.resumes(5)
	w.drops = func(to int, _ *raftpb.Message) bool { return to == k }
	w.until("the new process leads", w.members[k].Leads)
}

// TestV4RelayedEntriesAreTheLeaders checks that a peer that relays entries cannot change or add one, and that
// only the submitter's peer accepts relayed entries.
func TestV4RelayedEntriesAreTheLeaders(t *testing.T) {
	entry := func(r *raftpb.Message) *raftpb.Entry { return r.Entries[len(r.Entries)-1] }
	for name, change := range map[string]func(r *raftpb.Message, msg *Message){
		"changed":         func(r *raftpb.Message, _ *Message) { entry(r).Data = signed(3, fails(2)).encode() },
		"of another term": func(r *raftpb.Message, _ *Message) { entry(r).Term = new(entry(r).GetTerm() - 1) },
		"one more": func(r *raftpb.Message, _ *Message) {
			r.Entries = append(r.Entries, &raftpb.Entry{Index: new(entry(r).GetIndex() + 1), Term: r.Term})
		},
		"one fewer":          func(r *raftpb.Message, _ *Message) { r.Entries = r.Entries[:len(r.Entries)-1] },
		"after other ones":   func(_ *raftpb.Message, msg *Message) { msg.Previous = make([]byte, hashSize) },
		"not signed":         func(_ *raftpb.Message, msg *Message) { msg.Heads = nil },
		"of another leader":  func(r *raftpb.Message, _ *Message) { r.From = new(uint64(4)) },
		"with made-up votes": func(_ *raftpb.Message, msg *Message) { msg.Votes, msg.Heads = msg.Votes[:1], msg.Heads[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			w := keptOut(t, 80, electionTicks)
			m := w.members[submitterPeer]
			for w.side[submitterPeer] = 1; !m.missesLeader(); w.tick() {
			}
			msg, r := w.members[2].message(submitterPeer), &raftpb.Message{}
			if !w.members[2].proofs.relay(msg, m.node.BasicStatus().GetCommit()) {
				t.Fatal("nothing is relayed")
			}
			if err := proto.Unmarshal(msg.GetRaft(), r); err != nil {
				t.Fatal(err)
			}
			change(r, msg)
			msg.Raft = wrap(r).GetRaft()
			before := len(m.proofs.log)
			if _, err := m.Step(2, msg); m.Err() != nil || len(m.proofs.log) != before {
				t.Errorf("%d entries after %d: %v, %v", len(m.proofs.log), before, err, m.Err())
			}
			msg.To, r.To = 3, new(uint64(4))
			msg.Raft = wrap(r).GetRaft()
			if _, err := w.members[3].Step(2, msg); err == nil {
				t.Error("another peer accepts it")
			}
		})
	}
}

// TestTermThatIsToldToItsLeader checks that a new leader does not take a peer that only tells it the term for one
// without a log. It would never send that peer an entry again.
func TestTermThatIsToldToItsLeader(t *testing.T) {
	w := newWorld(t, 140, 3)
	w.ticks(3)
	w.side[2] = 1
	w.members[submitterPeer].node.TransferLeader(2)
	w.carry(submitterPeer, w.members[submitterPeer].ready())
	w.until("another one leads", w.members[1].Leads)
	told := &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(3)), To: new(uint64(2)), Term: new(w.members[1].term())}
	if _, err := w.members[1].Step(2, wrap(told)); err != nil {
		t.Fatal(err)
	}
	if p := w.members[1].node.Status().Progress[3]; p.State != tracker.StateProbe {
		t.Errorf("the leader lets a peer wait for a snapshot, which never comes: %v", p)
	}
}
