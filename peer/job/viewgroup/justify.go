package viewgroup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// knowledge is what justifies the messages of a Member and of other peers: see Statement.
type knowledge struct {
	log      chain                   // of this peer's log
	requests map[int]*raftpb.Message // last request of each peer for a vote or a pre-vote
	terms    map[int]uint64          // latest term of each peer
	follows  map[int]uint64          // latest term in which each peer has followed this one

	term   uint64       // latest term of this peer
	starts []*Statement // show that it may begin
	shown  []*Statement // show that the term of the message in hand may begin
	permit *Statement   // last permission to hand over to this peer, or nil

	granted ballots // pre-votes for this peer
	elected ballots // votes for this peer

	leader  int          // the leader that is known to be elected
	leads   uint64       // its term; 0 if there is none
	votes   []*Statement // for it
	matched uint64       // last entry that this peer has acknowledged to it in that term

	heads     map[int]*Statement   // latest of each peer, this one included
	newcomers map[int]*pb.Newcomer // whose statements other peers may have to check, by number
	evidence  []*Statement         // two statements that contradict each other, to be published
}

// ballots are the statements of other peers for this one in a term.
type ballots struct {
	term uint64
	of   []*Statement
}

// add adds a statement, which replaces those of earlier terms.
func (b *ballots) add(s *Statement) {
	if s.GetTerm() != b.term {
		*b = ballots{term: s.GetTerm()}
	}
	b.of = append(slices.DeleteFunc(b.of, func(other *Statement) bool { return other.GetBy() == s.GetBy() }), s)
}

// in returns the statements for a term, and one more.
func (b *ballots) in(term uint64, own *Statement) []*Statement {
	if b.term != term {
		return []*Statement{own}
	}
	return append(slices.Clone(b.of), own)
}

func newKnowledge() knowledge {
	return knowledge{
		term: 1, requests: make(map[int]*raftpb.Message), terms: make(map[int]uint64), follows: make(map[int]uint64), heads: make(map[int]*Statement),
		newcomers: make(map[int]*pb.Newcomer),
	}
}

// maxTerms bounds the terms by which another peer can be ahead of this one. A candidate chooses its term, and
// there are only 2^64.
const maxTerms = 1 << 20

var errUnjustified = errors.New("message without its justification")

// justified reports whether the statements known here justify a message of the Raft library. A message that
// no correct peer sends is an error. One that this peer cannot judge is ignored: its log may be behind.
func (m *Member) justified(from int, r *raftpb.Message, msg *Message) (ok bool, err error) {
	switch r.GetType() {
	case raftpb.MsgPreVote:
		if len(r.GetContext()) > 0 || r.GetTerm() > m.known.term+maxTerms {
			return false, fmt.Errorf("%w: an election in term %d", errUnjustified, r.GetTerm())
		}
		return true, nil
	case raftpb.MsgPreVoteResp, raftpb.MsgVoteResp:
		if !r.GetReject() {
			return m.receiveBallot(from, r, msg.GetBallot())
		}
	case raftpb.MsgVote:
		if len(r.GetContext()) > 0 && !handsOver(msg.GetStarts()) {
			return false, fmt.Errorf("%w: an election at once", errUnjustified)
		}
	case raftpb.MsgTimeoutNow:
		return m.receivePermit(from, r, msg.GetBallot())
	case raftpb.MsgAppResp:
		if err := m.checkAcknowledgement(from, r, msg.GetBallot()); err != nil {
			return false, err
		}
	}
	if len(msg.GetStarts()) > maxSigners || len(msg.GetVotes()) > maxSigners {
		return false, fmt.Errorf("%w: %d and %d votes", errUnjustified, len(msg.GetStarts()), len(msg.GetVotes()))
	}
	switch {
	case isOfLeader(r) && r.GetTerm() >= m.known.term:
		return m.checkLeader(from, r, msg)
	case r.GetTerm() > m.known.term:
		return m.mayBegin(r.GetTerm(), msg.GetStarts())
	}
	return true, nil
}

// isOfLeader reports whether only a leader sends a message.
func isOfLeader(r *raftpb.Message) bool {
	return r.GetType() == raftpb.MsgApp || r.GetType() == raftpb.MsgHeartbeat
}

// handsOver reports whether an election follows from a decision of the leader, or of the submitter's peer.
func handsOver(starts []*Statement) bool {
	return slices.ContainsFunc(starts, func(s *Statement) bool {
		return s.GetKind() == pb.Statement_PERMIT || s.GetBy() == submitterPeer && s.GetCandidate() == submitterPeer
	})
}

// mayBegin reports whether the statements show that a term may begin, and records them.
func (m *Member) mayBegin(term uint64, starts []*Statement) (ok bool, err error) {
	if len(starts) == 0 {
		return false, nil
	}
	for _, s := range starts {
		if s.GetTerm() == term && m.decidesElection(s) && m.isSigned(s) {
			m.known.shown = []*Statement{s}
			return true, nil
		}
	}
	for _, kind := range []pb.Statement_Kind{pb.Statement_START, pb.Statement_VOTE} {
		shown, err := m.signedOf(starts, kind, term, starts[0].GetCandidate())
		if err != nil {
			return false, err
		}
		if m.suffice(shown, m.isBehind()) {
			m.known.shown = shown
			return true, nil
		}
	}
	return false, nil
}

// decidesElection reports whether the statement s alone allows an election: it is of the leader, which hands
// over, or of the submitter's peer, for itself.
func (m *Member) decidesElection(s *Statement) bool {
	k := &m.known
	switch s.GetKind() {
	case pb.Statement_START:
		return s.GetBy() == submitterPeer && s.GetCandidate() == submitterPeer
	case pb.Statement_PERMIT:
		return k.leads > 0 && k.leads+1 == s.GetTerm() && k.leader == int(s.GetBy())
	}
	return false
}

// isBehind reports whether this peer hears no leader, so that its log may be behind.
func (m *Member) isBehind() bool {
	return m.Contact() != InTouch || m.node.BasicStatus().Lead == raft.None
}

// checkLeader reports whether the sender of a message leads in its term, and checks that the log of this
// peer is the sender's up to the entries in the message.
func (m *Member) checkLeader(from int, r *raftpb.Message, msg *Message) (ok bool, err error) {
	if m.known.leads != r.GetTerm() || m.known.leader != from {
		if ok, err := m.acceptLeader(from, r.GetTerm(), msg); err != nil || !ok {
			return false, err
		}
	}
	hash, ok := m.known.log.at(r.GetIndex())
	if ok && r.GetType() == raftpb.MsgApp && m.termAt(r.GetIndex()) == r.GetLogTerm() && !bytes.Equal(hash, msg.GetPrevious()) {
		return false, fmt.Errorf("%w: another log up to entry %d of term %d", errUnjustified, r.GetIndex(), r.GetLogTerm())
	}
	return true, nil
}

// acceptLeader reports whether a majority has elected a peer in a term, or follows it, and records that it
// leads. For the submitter's peer it suffices that the term may begin.
func (m *Member) acceptLeader(from int, term uint64, msg *Message) (ok bool, err error) {
	k := &m.known
	votes, err := m.signedOf(msg.GetVotes(), pb.Statement_VOTE, term, msg.GetFrom())
	if err != nil {
		return false, err
	}
	elected := m.suffice(votes, m.isBehind()) || m.suffice(m.followers(from, term), m.isBehind())
	switch {
	case from != submitterPeer && !elected:
		return false, nil
	case from != submitterPeer:
		k.shown = votes
	case term > k.term:
		if ok, err := m.mayBegin(term, msg.GetStarts()); err != nil || !ok {
			return false, err
		}
	}
	if k.leads == term { // two leaders in one term
		m.compareAll(k.votes, votes)
		return false, nil
	}
	k.leader, k.leads, k.votes, k.matched = from, term, votes, 0
	return true, nil
}

// followers returns the heads of the peers that have followed a leader in a term, as its own log shows.
func (m *Member) followers(leader int, term uint64) (heads []*Statement) {
	for _, s := range m.known.heads {
		if s.GetTerm() == term && int(s.GetCandidate()) == leader {
			heads = append(heads, s)
		}
	}
	return heads
}

// termAt returns the term of an entry of this peer's log, or 0 if the log does not have the entry.
func (m *Member) termAt(index uint64) uint64 {
	term, err := m.store.Term(index)
	if err != nil {
		return 0
	}
	return term
}

// receiveBallot records the signed vote or pre-vote of a peer.
func (m *Member) receiveBallot(from int, r *raftpb.Message, s *Statement) (ok bool, err error) {
	status, kind, into := m.node.BasicStatus(), pb.Statement_VOTE, &m.known.elected
	wanted := status.RaftState == raft.StateCandidate && r.GetTerm() == status.GetTerm()
	if r.GetType() == raftpb.MsgPreVoteResp {
		kind, into = pb.Statement_START, &m.known.granted
		wanted = status.RaftState == raft.StatePreCandidate && r.GetTerm() == status.GetTerm()+1
	}
	if !wanted { // it is late
		return false, nil
	}
	if !m.isBallot(s, kind, from, r.GetTerm()) {
		return false, fmt.Errorf("%w: a vote that is not signed", errUnjustified)
	}
	into.add(s)
	return true, nil
}

// isBallot reports whether s is a signed statement of a peer that this peer is its candidate in a term.
func (m *Member) isBallot(s *Statement, kind pb.Statement_Kind, by int, term uint64) bool {
	return s.GetKind() == kind && int(s.GetBy()) == by && s.GetTerm() == term && int(s.GetCandidate()) == m.config.Self && m.isSigned(s)
}

// receivePermit records the permission of the leader to hand over to this peer.
func (m *Member) receivePermit(from int, r *raftpb.Message, s *Statement) (ok bool, err error) {
	if m.node.BasicStatus().Lead != uint64(from)+1 || r.GetTerm() != m.known.term {
		return false, nil
	}
	if !m.isBallot(s, pb.Statement_PERMIT, from, r.GetTerm()+1) {
		return false, fmt.Errorf("%w: a handover that is not signed", errUnjustified)
	}
	m.known.permit = s
	return true, nil
}

// checkAcknowledgement checks the signed acknowledgement of a peer, if this peer leads and has to show it to
// others.
func (m *Member) checkAcknowledgement(from int, r *raftpb.Message, s *Statement) error {
	if r.GetReject() || !m.Leads() || r.GetTerm() != m.known.term || m.config.Self == submitterPeer {
		return nil
	}
	hash, ok := m.known.log.at(r.GetIndex())
	if s.GetKind() != pb.Statement_HEAD || int(s.GetBy()) != from || s.GetTerm() != r.GetTerm() || s.GetIndex() != r.GetIndex() || !ok {
		return fmt.Errorf("%w: an acknowledgement that is not signed", errUnjustified)
	}
	if !bytes.Equal(s.GetHash(), hash) {
		return fmt.Errorf("%w: an acknowledgement of another log", errUnjustified)
	}
	return m.receiveHead(s)
}

// receiveHeads records the heads of other peers' logs.
func (m *Member) receiveHeads(heads []*Statement) error {
	if len(heads) > maxSigners {
		return fmt.Errorf("%w: %d logs", errUnjustified, len(heads))
	}
	for _, s := range heads {
		if err := m.receiveHead(s); err != nil {
			return err
		}
	}
	return nil
}

// receiveHead records the head of another peer's log, and compares it with what is known of that log: the
// peer's last head, and this peer's own log as far as that peer has dictated it as leader.
func (m *Member) receiveHead(s *Statement) error {
	by, k := int(s.GetBy()), &m.known
	last := k.heads[by]
	switch {
	case by == m.config.Self || last != nil && bytes.Equal(last.GetSignature(), s.GetSignature()):
		return nil
	case s.GetKind() != pb.Statement_HEAD || len(s.GetHash()) != hashSize:
		return fmt.Errorf("%w: %v as the head of a log", errUnjustified, s.GetKind())
	case !m.isSigned(s):
		if _, known := m.config.IDs[by]; known {
			return fmt.Errorf("%w: a log of peer %d that it has not signed", errUnjustified, by)
		}
		return nil // a newcomer that is not in the log here yet
	}
	if last != nil && m.compare(last, s) {
		return nil
	}
	dictated := k.leads == s.GetTerm() && k.leader == by && s.GetIndex() <= k.matched
	if hash, ok := k.log.at(s.GetIndex()); ok && dictated && !bytes.Equal(hash, s.GetHash()) {
		m.blame(by)
		return nil
	}
	if last == nil || last.GetTerm() < s.GetTerm() || last.GetTerm() == s.GetTerm() && last.GetIndex() <= s.GetIndex() {
		k.heads[by] = s
	}
	return nil
}

// committed returns the index up to which the heads of a majority of the voters show that the log of this
// peer is committed in a term.
func (m *Member) committed(term uint64) (index uint64) {
	var heads []*Statement
	for _, s := range m.known.heads {
		hash, ok := m.known.log.at(s.GetIndex())
		if s.GetTerm() == term && ok && m.termAt(s.GetIndex()) == term && bytes.Equal(hash, s.GetHash()) {
			heads = append(heads, s)
		}
	}
	slices.SortFunc(heads, func(a, b *Statement) int { return int(b.GetIndex()) - int(a.GetIndex()) })
	for i, s := range heads {
		if m.suffice(heads[:i+1], true) {
			return s.GetIndex()
		}
	}
	return 0
}
