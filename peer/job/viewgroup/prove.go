package viewgroup

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// noteTerm records what shows that this peer's term may have begun, and that it leads. It runs before new
// entries are appended, so that the last entry is the one with which this peer was a candidate.
func (m *Member) noteTerm() {
	k, status := &m.known, m.node.BasicStatus()
	term := status.GetTerm()
	elects := status.RaftState == raft.StateCandidate || status.RaftState == raft.StateLeader
	if term != k.term {
		k.term = term
		switch {
		case !elects:
			k.starts = k.shown
		case k.permit.GetTerm() == term:
			k.starts = []*Statement{k.permit, m.sign(m.ballot(pb.Statement_START, term))}
		default:
			k.starts = k.granted.in(term, m.sign(m.ballot(pb.Statement_START, term)))
		}
	}
	if status.RaftState == raft.StateLeader && (k.leads != term || k.leader != m.config.Self) {
		k.leader, k.leads = m.config.Self, term
		k.votes = k.elected.in(term, m.sign(m.ballot(pb.Statement_VOTE, term)))
	}
}

// ballot returns this peer's statement about itself as a candidate.
func (m *Member) ballot(kind pb.Statement_Kind, term uint64) *Statement {
	last, _ := m.store.LastIndex()
	return &Statement{Kind: kind, Term: term, Candidate: uint32(m.config.Self), Index: last, LastTerm: m.termAt(last)}
}

// send adds a message to out, with what justifies it. It drops snapshots, which no peer needs because all
// start with the same state. It forwards another peer's proposal to the leader in this peer's name.
func (m *Member) send(out *Output, r *raftpb.Message) {
	switch r.GetType() {
	case raftpb.MsgSnap:
		return
	case raftpb.MsgProp:
		r.From = new(uint64(m.config.Self) + 1)
	}
	b, err := proto.Marshal(r)
	if err != nil {
		panic(err) // the library's messages have no text
	}
	msg := m.message(int(r.GetTo()) - 1)
	msg.Raft = b
	m.justify(msg, r)
	out.Send = append(out.Send, msg)
}

// message returns a message to a peer.
func (m *Member) message(to int) *Message {
	return &Message{From: uint32(m.config.Self), To: uint32(to)}
}

// justify adds the statements to msg that justify r.
func (m *Member) justify(msg *Message, r *raftpb.Message) {
	k, to := &m.known, int(r.GetTo())-1
	switch r.GetType() {
	case raftpb.MsgPreVoteResp, raftpb.MsgVoteResp:
		if !r.GetReject() {
			msg.Ballot = m.grant(to, r)
		}
	case raftpb.MsgTimeoutNow:
		msg.Ballot = m.sign(&Statement{Kind: pb.Statement_PERMIT, Term: r.GetTerm() + 1, Candidate: uint32(to)})
	case raftpb.MsgAppResp:
		if !r.GetReject() && r.GetIndex() > 0 && k.leads == r.GetTerm() && k.leader == to {
			k.matched = max(k.matched, r.GetIndex())
			if to != submitterPeer {
				msg.Ballot = m.headAt(r.GetIndex())
			}
		}
	case raftpb.MsgApp:
		msg.Previous, _ = k.log.at(r.GetIndex())
	}
	if r.GetTerm() == k.term && k.terms[to] < k.term {
		msg.Starts = k.starts
	}
	if isOfLeader(r) && m.config.Self != submitterPeer {
		if k.follows[to] < k.term {
			msg.Votes = k.votes
		}
		msg.Heads = m.headsInTerm()
	}
	if len(msg.GetStarts()) > 0 || len(msg.GetVotes()) > 0 {
		msg.Signers = m.newcomersIn(msg)
	}
}

// newcomersIn returns the newcomers that have signed statements in msg: a peer whose log is behind may not
// know them.
func (m *Member) newcomersIn(msg *Message) (signers []*pb.Newcomer) {
	for _, s := range slices.Concat(msg.GetStarts(), msg.GetVotes(), msg.GetHeads()) {
		if n := m.known.newcomers[int(s.GetBy())]; n != nil && !slices.Contains(signers, n) {
			signers = append(signers, n)
		}
	}
	return signers[:min(len(signers), maxSigners)]
}

// grant returns the signed form of a granted vote or pre-vote.
func (m *Member) grant(to int, r *raftpb.Message) *Statement {
	kind, request := pb.Statement_VOTE, m.known.requests[to]
	if r.GetType() == raftpb.MsgPreVoteResp {
		kind = pb.Statement_START
	}
	return m.sign(&Statement{Kind: kind, Term: r.GetTerm(), Candidate: uint32(to), Index: request.GetIndex(), LastTerm: request.GetLogTerm()})
}

// headAt returns the signed head of this peer's log up to an entry. The latest one is kept.
func (m *Member) headAt(index uint64) *Statement {
	k := &m.known
	hash, ok := k.log.at(index)
	if !ok {
		return nil
	}
	last := k.heads[m.config.Self]
	if last.GetTerm() == k.term && last.GetIndex() == index && slices.Equal(last.GetVoters(), m.voters()) {
		return last
	}
	s := m.sign(&Statement{Kind: pb.Statement_HEAD, Term: k.term, Candidate: uint32(k.leader), Index: index, LastTerm: m.termAt(index), Hash: hash})
	if last.GetTerm() < s.GetTerm() || last.GetIndex() <= index {
		k.heads[m.config.Self] = s
	}
	return s
}

// headsInTerm returns the heads of the current term that are known to this peer, which leads.
func (m *Member) headsInTerm() (heads []*Statement) {
	last, _ := m.store.LastIndex()
	m.headAt(last)
	for _, s := range m.known.heads {
		if s.GetTerm() == m.known.term {
			heads = append(heads, s)
		}
	}
	slices.SortFunc(heads, func(a, b *Statement) int {
		if a.GetIndex() != b.GetIndex() {
			return int(b.GetIndex()) - int(a.GetIndex())
		}
		return int(a.GetBy()) - int(b.GetBy())
	})
	return heads[:min(len(heads), maxSigners)]
}

// compareLogs sends the heads of this peer's log and of its leader's to the other voters and to the
// submitter's peer, now and then. So they notice a leader that gives them different logs. A leader that is
// the submitter's peer is trusted.
func (m *Member) compareLogs(out *Output) {
	k := &m.known
	follows := k.leads == k.term && k.leader != m.config.Self && k.matched > 0
	if m.now%heartbeatTicks != 0 || !follows || k.leader == submitterPeer || !m.Votes(m.config.Self) {
		return
	}
	heads := []*Statement{m.headAt(k.matched)}
	if s := k.heads[k.leader]; s.GetTerm() == k.term {
		heads = append(heads, s)
	}
	for _, to := range m.voters() {
		if int(to) != m.config.Self && int(to) != k.leader {
			msg := m.message(int(to))
			msg.Heads = heads
			out.Send = append(out.Send, msg)
		}
	}
}

// compare ends this peer's part in the group if two statements contradict each other.
func (m *Member) compare(a, b *Statement) bool {
	if !contradict(a, b) {
		return false
	}
	m.known.evidence = []*Statement{a, b}
	m.blame(int(a.GetBy()))
	return true
}

// compareAll compares each of the statements in as with each of those in bs.
func (m *Member) compareAll(as, bs []*Statement) {
	for _, a := range as {
		for _, b := range bs {
			if m.compare(a, b) {
				return
			}
		}
	}
}

// blame ends this peer's part in the group, because another peer has signed or sent different logs to
// different peers. No peer can tell which of two views others have acted on, so the job ends here.
func (m *Member) blame(peer int) {
	m.broken = fmt.Errorf("view group: peer %s has told different peers different views", m.config.IDs[peer])
}

// publish sends the evidence against a peer to all others, once.
func (m *Member) publish(out *Output) {
	evidence := m.known.evidence
	if m.known.evidence = nil; evidence == nil {
		return
	}
	for _, id := range slices.Concat(m.conf.GetVoters(), m.conf.GetLearners()) {
		if to := int(id) - 1; to != m.config.Self && to != int(evidence[0].GetBy()) {
			msg := m.message(to)
			msg.Evidence = evidence
			out.Send = append(out.Send, msg)
		}
	}
}

// receiveEvidence checks the evidence against a peer. Evidence that proves nothing is an error.
func (m *Member) receiveEvidence(evidence []*Statement) error {
	if len(evidence) != 2 || !contradict(evidence[0], evidence[1]) || !m.isSigned(evidence[0]) || !m.isSigned(evidence[1]) {
		return fmt.Errorf("%w: evidence that proves nothing", errUnjustified)
	}
	if m.broken == nil {
		m.blame(int(evidence[0].GetBy()))
	}
	return nil
}
