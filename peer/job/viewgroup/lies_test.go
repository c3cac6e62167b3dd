package viewgroup

import (
	"bytes"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// A lie is a message that a malicious member sends to another one, with everything that it can sign itself.
// m is the liar, which otherwise follows the protocol.
type lie struct {
	name string
	tell func(m *Member, to int) []*Message
}

// lieNamed returns the lie with a name.
func lieNamed(name string) lie {
	for _, l := range allLies {
		if l.name == name {
			return l
		}
	}
	panic(name)
}

var allLies = []lie{
	{"leads in a new term", func(m *Member, to int) []*Message { return m.usurps(to, m.term()+1) }},
	{"leads in this term", func(m *Member, to int) []*Message { return m.usurps(to, m.term()) }},
	{"leads with made-up votes", func(m *Member, to int) []*Message {
		told := m.usurps(to, m.term()+1)
		for by := range uint32(m.config.Peers) {
			vote := m.proofs.ballot(pb.Statement_VOTE, m.term()+1)
			vote.By, vote.Signature = by, []byte("made up")
			told[0].Votes = append(told[0].Votes, vote)
		}
		return told
	}},
	{"knows a later term", func(m *Member, to int) []*Message {
		term := m.term() + 5
		return []*Message{m.lies(to, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), Term: &term}, m.proofs.sign(m.proofs.ballot(pb.Statement_START, term)))}
	}},
	{"hands over without leading", func(m *Member, to int) []*Message {
		term := m.term()
		msg := m.lies(to, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), Term: &term})
		msg.Ballot = m.proofs.sign(&Statement{Kind: pb.Statement_PERMIT, Term: term + 1, Candidate: uint32(to)})
		return []*Message{msg}
	}},
	{"is a candidate beside the leader", func(m *Member, to int) []*Message {
		term := m.term() + 1
		permit := m.proofs.sign(&Statement{Kind: pb.Statement_PERMIT, Term: term, Candidate: uint32(m.config.Self)})
		return []*Message{m.asksForVote(to, term, permit)}
	}},
	{"forges the permission of the leader", func(m *Member, to int) []*Message {
		term := m.term() + 1
		forged := &Statement{Kind: pb.Statement_PERMIT, By: submitterPeer, Term: term, Candidate: uint32(m.config.Self), Signature: []byte("made up")}
		return []*Message{m.asksForVote(to, term, forged)}
	}},
	{"shows the submitter's decision as its own", func(m *Member, to int) []*Message {
		start := &Statement{Kind: pb.Statement_START, By: submitterPeer, Term: m.term() + 1, Candidate: submitterPeer}
		start.Signature = signs(submitterPeer)(text(start)) // the submitter's peer sent this statement as a candidate
		return []*Message{m.asksForVote(to, m.term()+1, start)}
	}},
	{"forges an order of the submitter", func(m *Member, to int) []*Message {
		forged := &Statement{Kind: pb.Statement_ORDER, By: submitterPeer, Term: m.term() + 1, Candidate: uint32(m.config.Self), Signature: []byte("made up")}
		return []*Message{m.asksForVote(to, m.term()+1, forged)}
	}},
	{"is a candidate by its own order", func(m *Member, to int) []*Message {
		order := m.proofs.sign(&Statement{Kind: pb.Statement_ORDER, Term: m.term() + 1, Candidate: uint32(m.config.Self)})
		return []*Message{m.asksForVote(to, m.term()+1, order)}
	}},
	{"orders an election", func(m *Member, to int) []*Message {
		msg := m.message(to)
		msg.Ballot = m.proofs.sign(&Statement{Kind: pb.Statement_ORDER, Term: m.term() + 1, Candidate: uint32(to)})
		return []*Message{msg}
	}},
	{"leads in no term", func(m *Member, to int) []*Message {
		return []*Message{m.lies(to, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum()})}
	}},
	{"is a candidate in no term", func(m *Member, to int) []*Message {
		last := uint64(1 << 40)
		return []*Message{m.lies(to, &raftpb.Message{Type: raftpb.MsgVote.Enum(), Index: &last, LogTerm: &last})}
	}},
	{"asks for a pre-vote", func(m *Member, to int) []*Message {
		term, last := m.term()+1, uint64(1<<40)
		return []*Message{m.lies(to, &raftpb.Message{Type: raftpb.MsgPreVote.Enum(), Term: &term, Index: &last, LogTerm: &term})}
	}},
	{"signs two logs", func(m *Member, to int) []*Message {
		msg := m.message(to)
		for hash := range byte(2) {
			msg.Heads = append(msg.Heads, m.proofs.sign(&Statement{Kind: pb.Statement_HEAD, Term: m.term(), Index: 2, Hash: bytes.Repeat([]byte{hash}, hashSize)}))
		}
		return []*Message{msg}
	}},
	{"changes an entry that it relays", func(m *Member, to int) []*Message {
		msg, r := m.message(submitterPeer), &raftpb.Message{}
		if to != submitterPeer || !m.proofs.relay(msg, 2) {
			return nil
		}
		if err := proto.Unmarshal(msg.GetRaft(), r); err != nil {
			panic(err)
		}
		r.Entries[len(r.Entries)-1].Data = signed(m.config.Self, fails(m.config.Self-1)).encode()
		msg.Raft = wrap(r).GetRaft()
		return []*Message{msg}
	}},
	{"sends entries that it has not signed", func(m *Member, to int) []*Message {
		return []*Message{m.appends(to, &raftpb.Entry{})}
	}},
	{"changes the voters twice at once", func(m *Member, to int) []*Message {
		change := func(c *raftpb.ConfChange) *raftpb.Entry {
			data, err := proto.Marshal(c)
			if err != nil {
				panic(err)
			}
			return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: data}
		}
		demotes := func() *raftpb.ConfChange {
			return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(to) + 1)}
		}
		shown := demotes()
		m.certify(shown)
		msg := m.appends(to, change(shown), change(demotes()))
		m.signsEntries(m, msg)
		return []*Message{msg}
	}},
	// The liar claims that the other members have acknowledged a log that differs from theirs.
	{"commits an entry that no other member has", func(m *Member, to int) []*Message {
		term := m.term()
		last, _ := m.store.LastIndex()
		previous, _ := m.proofs.log.at(last)
		entry := &raftpb.Entry{Index: new(last + 1), Term: &term, Data: signed(m.config.Self, fails(m.config.Self-1)).encode()}
		msg := m.lies(to, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: new(m.proofs.termAt(last)), Entries: []*raftpb.Entry{entry}, Commit: new(last + 1)})
		msg.Previous, msg.Votes = previous, m.proofs.votes
		hash, _ := append(chain(nil), m.proofs.log...).append([]*raftpb.Entry{entry}).at(last + 1)
		msg.Heads = []*Statement{m.proofs.sign(&Statement{Kind: pb.Statement_HEAD, Term: term, Candidate: uint32(m.config.Self), Index: last + 1, LastTerm: term, Hash: hash})}
		again := proto.CloneOf(msg)
		r := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: &term, Commit: new(last + 1)}
		again.Raft = m.lies(to, r).Raft
		return []*Message{msg, again}
	}},
}

// term returns the current term of m.
func (m *Member) term() uint64 { return m.node.BasicStatus().GetTerm() }

// lies returns a message of the Raft library, with statements that its term may begin.
func (m *Member) lies(to int, r *raftpb.Message, starts ...*Statement) *Message {
	r.From, r.To = new(uint64(m.config.Self)+1), new(uint64(to)+1)
	msg := wrap(r)
	msg.Starts = starts
	return msg
}

// asksForVote returns the message of a candidate with the longest log, beside a leader.
func (m *Member) asksForVote(to int, term uint64, start *Statement) *Message {
	last := uint64(1 << 40)
	return m.lies(to, &raftpb.Message{
		Type: raftpb.MsgVote.Enum(), Term: &term, Index: &last, LogTerm: &term, Context: []byte("CampaignTransfer"),
	}, start)
}

// appends returns the message with which a leader appends entries to its log.
func (m *Member) appends(to int, entries ...*raftpb.Entry) *Message {
	term := m.term()
	last, _ := m.store.LastIndex()
	for i, e := range entries {
		e.Index, e.Term = new(last+1+uint64(i)), &term
	}
	msg := m.lies(to, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: new(m.proofs.termAt(last)), Entries: entries, Commit: new(uint64(1))})
	msg.Previous, _ = m.proofs.log.at(last)
	msg.Votes = m.proofs.votes
	return msg
}

// signsEntries adds to msg, which m sends to another peer, its signature of the entries in msg.
func (m *Member) signsEntries(to *Member, msg *Message) {
	r := &raftpb.Message{}
	if err := proto.Unmarshal(msg.GetRaft(), r); err != nil || checkEntries(r) != nil {
		return
	}
	last, hash := to.proofs.relayedHead(r)
	msg.Heads = append(msg.Heads, m.proofs.sign(&Statement{Kind: pb.Statement_HEAD, Term: r.GetTerm(), Candidate: uint32(m.config.Self), Index: last, Hash: hash}))
}

// usurps returns the messages of a peer that was not elected and that commits an entry of its own.
func (m *Member) usurps(to int, term uint64) []*Message {
	last, _ := m.store.LastIndex()
	msg := m.lies(to, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), Term: &term, Index: &last, LogTerm: new(m.proofs.termAt(last)), Commit: new(last + 1),
		Entries: []*raftpb.Entry{{Index: new(last + 1), Term: &term, Data: signed(m.config.Self, fails(m.config.Self-1)).encode()}},
	}, m.proofs.sign(m.proofs.ballot(pb.Statement_START, term)))
	msg.Previous, _ = m.proofs.log.at(last)
	msg.Votes = []*Statement{m.proofs.sign(m.proofs.ballot(pb.Statement_VOTE, term))}
	m.signsEntries(m, msg)
	return []*Message{msg}
}

// tellLie sends a lie of member from to another one.
func (g *whole) tellLie(from, to, number int) {
	for _, msg := range lieNamed(g.left.lies[number]).tell(g.members[from], to) {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
		if err != nil {
			panic(err)
		}
		if g.reaches(from, to) {
			q := &g.queues[from*len(g.members)+to]
			*q = append(*q, string(b))
		}
	}
	g.left.lies[number] = ""
}

// checkHonest checks the members that do not lie: one that has ended its part names the liar, and of any two
// with different views of an epoch one at least has ended its part (V4).
func (g *whole) checkHonest() {
	for i, m := range g.members {
		if g.crashed[i] || i == liar {
			continue
		}
		if m.broken != nil && m.broken.Error() != new(Member).blamed() {
			g.fail("V4: peer %d has ended its part: %v", i, m.broken)
		}
		for j, other := range g.members[:i] {
			if g.crashed[j] || j == liar || m.broken != nil || other.broken != nil {
				continue
			}
			for epoch, v := range g.had[i] {
				if w, ok := g.had[j][epoch]; ok && fmt.Sprint(v) != fmt.Sprint(w) {
					g.fail("V4: peers %d and %d go on with two views of epoch %d: %v and %v", j, i, epoch, w, v)
				}
			}
		}
	}
}

// blamed returns the error of a member that has found the liar.
func (m *Member) blamed() string {
	k := &proofs{ids: idsOf(liar + 1)}
	k.blame(liar)
	return k.found.Error()
}
