package viewgroup

import (
	"errors"
	"fmt"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// write adds an entry to the log without checking its effect, like a malicious leader.
func (w *world) write(i int, p Proposal) {
	w.Helper()
	m := w.members[i]
	m.attempt(func() error { return m.node.Propose(p.encode()) })
	w.carry(i, m.ready())
}

// TestV4LiarFailsOnlyItself checks that a malicious peer's log entries, even those of a leader,
// do not change other peers' processes, and that all peers continue with equal views.
func TestV4LiarFailsOnlyItself(t *testing.T) {
	const liar = 2 // hosts rank 1
	other, own := view.Process{Rank: 2}, view.Process{Rank: liar - 1}
	forged := signed(liar, view.Change{Process: other, To: view.Failed})
	forged.Author = submitterPeer
	cases := map[string]struct {
		lie     Proposal
		changes view.Process // process that the entry is about
		want    view.State
	}{
		"accuses another peer":              {signed(liar, view.Change{Process: other, To: view.Failed}), other, view.Live},
		"has another's process finish":      {signed(liar, view.Change{Process: other, To: view.Finished}), other, view.Live},
		"proposes for the submitter":        {forged, other, view.Live},
		"proposes for an unknown peer":      {signed(77, view.Change{Process: other, To: view.Failed}), other, view.Live},
		"has a process of its own join":     {signed(liar, view.Change{Process: view.Process{Rank: 1, Replica: 1}}), view.Process{Rank: 1, Replica: 1}, view.Vacant},
		"makes another peer's process join": {signed(liar, view.Change{Process: view.Process{Rank: 0, Replica: 1}}), view.Process{Rank: 0, Replica: 1}, view.Vacant},
		"names a rank that there is not":    {signed(liar, view.Change{Process: view.Process{Rank: 50}, To: view.Failed}), other, view.Live},
		"fails itself":                      {signed(liar, view.Change{Process: own, To: view.Failed}), own, view.Failed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, leads := range []int{submitterPeer, liar} {
				w := newWorld(t, 1, 5)
				w.liar = liar
				w.ticks(3)
				if leads == liar {
					w.members[submitterPeer].node.TransferLeader(liar + 1)
					w.carry(submitterPeer, w.members[submitterPeer].ready())
					w.until("the liar leads", func() bool { return w.members[liar].Leads() })
				}
				if leads == liar {
					w.write(liar, c.lie)
				} else {
					w.carry(liar, w.members[liar].Propose(c.lie))
				}
				w.ticks(5)
				w.propose(submitterPeer, 0, view.Failed) // the job continues
				w.until("rank 0 has failed everywhere", w.failed(0, 0, 1, 2, 3, 4))
				for i, m := range w.members {
					if got := m.View().State(c.changes); got != c.want || m.broken != nil {
						t.Errorf("leader %d: peer %d has %v as %v, want %v (%v)", leads, i, c.changes, got, c.want, m.broken)
					}
				}
			}
		})
	}
}

// TestV4MajorityOfJurorsFailsAPeer checks that a majority of the jurors fails a peer while the
// submitter does not vote, and that the change names them. One juror alone has no effect.
func TestV4MajorityOfJurorsFailsAPeer(t *testing.T) {
	w := newWorld(t, 2, 5)
	w.ticks(3)
	lost := view.Change{Process: view.Process{Rank: 3}, To: view.Failed} // on peer 4
	accuse := func(i int) { w.carry(i, w.members[i].Propose(signed(i, lost))) }
	w.crash(4)
	accuse(1)
	accuse(2)
	w.ticks(10)
	if w.failed(3, 0)() {
		t.Fatal("the accusations of two of four jurors (peers 1 to 3 and the submitter's) have failed the peer")
	}
	accuse(2) // repeated
	w.ticks(10)
	if w.failed(3, 0)() {
		t.Fatal("one accuser counts twice")
	}
	accuse(3)
	w.until("the accused peer has failed", w.failed(3, 0, 1, 2, 3))
}

// TestV4FailedJurorsDoNotCount loses two peers at once. The remaining jurors of each fail both.
func TestV4FailedJurorsDoNotCount(t *testing.T) {
	w := newWorld(t, 3, 7)
	w.ticks(3)
	w.crash(5)
	w.crash(6)
	for i := 1; i <= 4; i++ {
		for _, rank := range []int{4, 5} {
			w.carry(i, w.members[i].Propose(signed(i, view.Change{Process: view.Process{Rank: rank}, To: view.Failed})))
		}
	}
	w.until("both have failed", func() bool { return w.failed(4, 0, 1, 2, 3, 4)() && w.failed(5, 0, 1, 2, 3, 4)() })
}

// TestV4UnsignedNewcomersAreRejected checks that no member accepts a newcomer that a malicious leader adds
// without the submitter's signature.
func TestV4UnsignedNewcomersAreRejected(t *testing.T) {
	strangers := invite(Newcomer{Peer: 4, ID: idOf(2), Process: NoProcess}) // no process of the submitter
	for name, n := range map[string]Newcomer{
		"a peer":                                  {Peer: 4, ID: p2ppeer.ID("stranger"), Process: view.Process{Replica: 1}, Signature: []byte("made up")},
		"a new process of the submitter":          {Peer: 4, ID: idOf(submitterPeer), Process: NoProcess, Signature: []byte("made up")},
		"a peer as a new process":                 strangers,
		"a new process with the number of a peer": invite(Newcomer{Peer: 2, ID: idOf(submitterPeer), Process: NoProcess}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, 4)
			w.ticks(3)
			m := w.members[0]
			w.members = append(w.members, nil) // place of the newcomer
			w.views, w.side = append(w.views, view.View{}), append(w.side, 0)
			for i := range 4 {
				w.carry(i, w.members[i].Introduce(n))
			}
			m.attempt(func() error { return m.node.ProposeConfChange(m.config.introduction(n)) })
			w.carry(0, m.ready())
			w.ticks(5)
			for i := range 4 {
				if m := w.members[i]; m.config.IDs[n.Peer] == n.ID || m.proofs.submitter != submitterPeer || m.broken != nil {
					t.Errorf("peer %d has admitted the newcomer: %v, submitter %d (%v)", i, m.config.IDs, m.proofs.submitter, m.broken)
				}
			}
			w.propose(0, 0, view.Failed)
			w.until("rank 0 has failed", w.failed(0, 0, 1, 2, 3))
		})
	}
}

// handOver makes a leader hand over to another peer, again and again until that leads.
func (w *world) handOver(from, to int) {
	w.Helper()
	w.until("the next one leads", func() bool {
		w.members[from].node.TransferLeader(uint64(to) + 1)
		w.carry(from, w.members[from].ready())
		return w.members[to].Leads()
	})
}

// withLiar returns a world without the submitter's peer, in which peer liar leads and the other peers except
// the last one vote.
func withLiar(t *testing.T, seed uint64, peers int) *world {
	t.Helper()
	w := newWorld(t, seed, peers)
	w.liar = liar
	w.ticks(3)
	w.handOver(submitterPeer, liar)
	w.crash(submitterPeer)
	w.until("the others vote", func() bool { return !w.members[liar].Votes(submitterPeer) && len(w.members[liar].proofs.voters)%2 == 1 })
	w.ticks(electionTicks)
	return w
}

// tellLie makes the liar tell a lie to a peer.
func (w *world) tellLie(name string, to int) {
	w.Helper()
	for _, msg := range lieNamed(name).tell(w.members[liar], to) {
		out, err := w.members[to].Step(liar, msg)
		if err != nil && !errors.Is(err, errUnjustified) && !errors.Is(err, errForeign) {
			w.Fatal(err)
		}
		w.carry(to, out)
	}
}

// TestV4LeaderAloneCommitsNothing checks that an entry is not committed because the leader says so: a
// majority of the voters must have acknowledged it.
func TestV4LeaderAloneCommitsNothing(t *testing.T) {
	w := withLiar(t, 40, 6)
	if n := len(w.members[2].proofs.voters); n != 5 {
		t.Fatalf("%d vote, want 5", n)
	}
	w.tellLie("commits an entry that no other member has", 2)
	if epoch := w.members[2].View().Epoch; epoch != 1 {
		t.Errorf("committed: epoch %d", epoch)
	}
}

// TestV4LeaderWithTwoLogsIsNamed checks that the honest peers stop, and name the leader, if it has given them
// different views of an epoch.
func TestV4LeaderWithTwoLogsIsNamed(t *testing.T) {
	w := withLiar(t, 41, 4)
	w.propose(liar, 1, view.Failed)
	w.until("rank 1 has failed", w.failed(1, liar, 2, 3))
	w.split = true
	w.tellLie("commits an entry that no other member has", 2)
	w.propose(liar, 2, view.Failed)
	w.until("both have stopped", func() bool { return w.members[2].Contact() == CutOff && w.members[3].Contact() == CutOff })
	for _, i := range []int{2, 3} {
		if err := w.members[i].Err(); err == nil || err.Error() != new(Member).blamed() {
			t.Errorf("peer %d has stopped because: %v", i, err)
		}
	}
}

// TestV4ShorterLogOfALeaderIsCompared checks that a leader is also found if no two of its statements are about
// the same entry, and if they differ in an entry of an earlier term.
func TestV4ShorterLogOfALeaderIsCompared(t *testing.T) {
	w := withLiar(t, 42, 4)
	w.propose(liar, 1, view.Failed)
	w.until("rank 1 has failed", w.failed(1, liar, 2, 3))
	m := w.members[2]
	for index := uint64(2); index <= m.proofs.matched; index++ {
		hash, _ := m.proofs.log.at(index)
		msg := m.message(2)
		msg.From = 3
		msg.Heads = []*Statement{w.members[liar].proofs.sign(&Statement{Kind: pb.Statement_HEAD, Term: m.term(), Candidate: liar, Index: index, Hash: hash})}
		if _, err := m.Step(3, msg); err != nil {
			t.Fatalf("entry %d: %v", index, err)
		}
	}
	msg := m.message(2)
	msg.From = 3
	msg.Heads = []*Statement{w.members[liar].proofs.sign(&Statement{Kind: pb.Statement_HEAD, Term: m.term(), Candidate: liar, Index: 2, Hash: make([]byte, hashSize)})}
	if _, err := m.Step(3, msg); err != nil || m.Contact() != CutOff || m.Err().Error() != new(Member).blamed() {
		t.Errorf("the leader has signed another log: %v", err)
	}
}

// TestV4LeaderDoesNotMakeAPeerContradictItself checks that a peer does not replace an entry that it has
// acknowledged to the same leader, which would let it sign two logs, and blames the leader.
func TestV4LeaderDoesNotMakeAPeerContradictItself(t *testing.T) {
	w := withLiar(t, 46, 4)
	w.propose(liar, 1, view.Failed)
	w.until("rank 1 has failed", w.failed(1, liar, 2, 3))
	m, term, led := w.members[2], w.members[2].term(), w.members[liar]
	last := m.proofs.matched
	entry := &raftpb.Entry{Index: new(last + 1), Term: &term, Data: signed(liar, fails(liar-1)).encode()}
	deliver := func(e *raftpb.Entry) error {
		msg := led.lies(2, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: new(m.proofs.termAt(last)), Entries: []*raftpb.Entry{e}})
		msg.Previous, _ = m.proofs.log.at(last)
		led.signsEntries(m, msg)
		_, err := m.Step(liar, msg)
		return err
	}
	if err := deliver(entry); err != nil || m.proofs.matched != last+1 {
		t.Fatalf("acknowledged up to %d, want %d: %v", m.proofs.matched, last+1, err)
	}
	for _, e := range []*raftpb.Entry{
		{Index: new(last + 2), Term: &term},         // leaves a gap
		{Index: new(last + 1), Term: new(term + 1)}, // later than the leader's term
	} {
		if err := deliver(e); err == nil || m.Err() != nil {
			t.Errorf("entry %d of term %d is accepted: %v, %v", e.GetIndex(), e.GetTerm(), err, m.Err())
		}
	}
	in := incoming{from: liar, raft: &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: new(m.proofs.termAt(last)), Entries: []*raftpb.Entry{{Index: new(last + 1), Term: new(term - 1)}},
	}, msg: &Message{}}
	in.msg.Previous, _ = m.proofs.log.at(last)
	if ok, err := m.proofs.justified(in); ok || err != nil || m.proofs.found == nil || m.proofs.found.Error() != new(Member).blamed() {
		t.Errorf("an acknowledged entry is replaced: %v, %v, %v", ok, err, m.proofs.found)
	}
}

// TestV4UnlawfulChangesOfMembershipHaveNoEffect makes a malicious leader propose changes of the membership
// that no correct leader proposes.
func TestV4UnlawfulChangesOfMembershipHaveNoEffect(t *testing.T) {
	change := func(kind raftpb.ConfChangeType, peer int) *raftpb.ConfChange {
		return &raftpb.ConfChange{Type: kind.Enum(), NodeId: new(uint64(peer) + 1)}
	}
	for name, c := range map[string]raftpb.ConfChangeI{
		"removes a voter with a live process":   change(raftpb.ConfChangeRemoveNode, 2),
		"removes a learner with a live process": change(raftpb.ConfChangeRemoveNode, 6),
		"removes the submitter's peer":          change(raftpb.ConfChangeRemoveNode, submitterPeer),
		"takes a vote":                          change(raftpb.ConfChangeAddLearnerNode, 2),
		"removes a later newcomer":              change(raftpb.ConfChangeRemoveNode, 9),
		"adds a stranger as a voter":            change(raftpb.ConfChangeAddNode, 9),
		"adds a stranger as a learner":          change(raftpb.ConfChangeAddLearnerNode, 9),
		"replaces all voters": &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{
			{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(3))}, {Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(4))},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withLiar(t, 43, 7)
			before := fmt.Sprint(w.members[2].conf)
			m := w.members[liar]
			if c, ok := c.(*raftpb.ConfChange); ok && !m.certify(c) {
				t.Fatal("the liar cannot show that the change before is committed")
			}
			m.attempt(func() error { return m.node.ProposeConfChange(c) })
			w.carry(liar, m.ready())
			w.propose(2, 4, view.Finished)
			w.until("the job continues", func() bool { return w.members[6].View().State(view.Process{Rank: 4}) == view.Finished })
			w.ticks(electionTicks)
			for _, i := range []int{2, 3, 4, 6} {
				if after := fmt.Sprint(w.members[i].conf); after != before || w.members[i].Err() != nil || w.members[i].former[10] {
					t.Errorf("peer %d: %s, was %s (%v)", i, after, before, w.members[i].Err())
				}
			}
		})
	}
}

// TestV4NoPreVotesAreGivenForLater checks that a peer gets no pre-vote while there is a leader, or has just been
// one: it could show it later to begin a term.
func TestV4NoPreVotesAreGivenForLater(t *testing.T) {
	w := newWorld(t, 47, 5)
	w.liar = liar
	for range 3 * electionTicks {
		w.tick()
		for _, ahead := range []uint64{1, 2, 1 << 30} {
			for to, m := range w.members {
				term, last := m.term()+ahead, uint64(1<<40)
				if to == liar {
					continue
				}
				ask := w.members[liar].lies(to, &raftpb.Message{Type: raftpb.MsgPreVote.Enum(), Term: &term, Index: &last, LogTerm: &term})
				out, err := m.Step(liar, ask)
				if err != nil {
					t.Fatal(err)
				}
				for _, msg := range out.Send {
					if msg.GetBallot().GetKind() == pb.Statement_START && msg.GetTo() == liar {
						t.Fatalf("tick %d: peer %d gives a pre-vote for term %d of %d", w.now, to, term, m.term())
					}
				}
			}
		}
	}
}

// TestV4FewPreVotesAreGivenInATimeWithoutALeader checks that the pre-votes for one term do not earn those for the
// next one: a peer could collect them without end, and use them later.
func TestV4FewPreVotesAreGivenInATimeWithoutALeader(t *testing.T) {
	w := newWorld(t, 53, 5)
	w.liar = liar
	w.ticks(3)
	for i := range w.side {
		w.side[i] = i // nobody hears a leader
	}
	w.ticks(electionTicks + 1)
	var starts []*Statement
	for ahead := uint64(1); ahead <= 2*maxAhead; ahead++ {
		var given []*Statement
		for _, to := range []int{2, 3, 4} {
			term, last := w.members[to].term()+ahead, uint64(1<<40)
			ask := w.members[liar].lies(to, &raftpb.Message{Type: raftpb.MsgPreVote.Enum(), Term: &term, Index: &last, LogTerm: &term}, starts...)
			out, err := w.members[to].Step(liar, ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, msg := range out.Send {
				if msg.GetBallot().GetKind() == pb.Statement_START {
					given = append(given, msg.GetBallot())
				}
			}
		}
		if want := ahead <= maxAhead; want != (len(given) == 3) {
			t.Errorf("%d pre-votes for a term %d ahead", len(given), ahead)
		}
		starts = given
	}
}

// TestV4MessagesWithoutATermAreRefused checks that a peer does not pass messages of other peers to the library
// as its own.
func TestV4MessagesWithoutATermAreRefused(t *testing.T) {
	w := newWorld(t, 50, 4)
	for kind := range raftpb.MessageType_name {
		if raftpb.MessageType(kind) == raftpb.MsgProp {
			continue
		}
		r := &raftpb.Message{Type: raftpb.MessageType(kind).Enum(), Index: new(uint64(1 << 40)), LogTerm: new(uint64(1 << 40))}
		before := w.members[2].proofs.state()
		if _, err := w.members[2].Step(liar, w.members[liar].lies(2, r)); !errors.Is(err, errForeign) || w.members[2].proofs.state() != before || w.members[2].Err() != nil {
			t.Errorf("%v is accepted: %v, %v", r.GetType(), err, w.members[2].Err())
		}
	}
}

// TestV4LeaderThatWithholdsEntriesIsNoContact checks that a peer that gets heartbeats but no entries is cut off.
func TestV4LeaderThatWithholdsEntriesIsNoContact(t *testing.T) {
	w := withLiar(t, 48, 4)
	w.drops = func(to int, r *raftpb.Message) bool { return to == 3 && r.GetType() == raftpb.MsgApp }
	w.propose(liar, 1, view.Failed)
	w.until("rank 1 has failed", w.failed(1, liar, 2))
	w.until("peer 3 is cut off", func() bool { return w.members[3].Contact() == CutOff })
	if w.members[2].Contact() != InTouch {
		t.Error("peer 2 is not in touch")
	}
}

// TestV4LeaderHasTheLogThatItWasElectedWith checks that a leader whose entries do not fit the last entry that
// its voters were told is refused: it may lack entries that are committed.
func TestV4LeaderHasTheLogThatItWasElectedWith(t *testing.T) {
	for name, claimed := range map[string]uint64{"the truth": 0, "a longer log": 5} {
		w := newWorld(t, 49, 4)
		w.ticks(3)
		m, led := w.members[2], w.members[liar]
		m.touched = -absentTicks - 1 // it hears no leader
		last, _ := m.store.LastIndex()
		term, lastTerm := m.term()+1, m.proofs.termAt(last)
		msg := led.lies(2, &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: &lastTerm, Entries: []*raftpb.Entry{{Index: new(last + 1), Term: &term}},
		})
		msg.Previous, _ = m.proofs.log.at(last)
		for _, by := range []int{liar, submitterPeer} {
			msg.Votes = append(msg.Votes, w.members[by].proofs.sign(&Statement{
				Kind: pb.Statement_VOTE, Term: term, Candidate: liar, Index: last + claimed, LastTerm: lastTerm,
			}))
		}
		led.signsEntries(m, msg)
		_, err := m.Step(liar, msg)
		if after, _ := m.store.LastIndex(); err != nil || (m.Err() == nil) != (claimed == 0) || (after > last) != (claimed == 0) {
			t.Errorf("%s: %v, %v, last entry %d after %d", name, err, m.Err(), after, last)
		}
	}
}
