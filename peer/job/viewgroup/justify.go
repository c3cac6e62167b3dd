package viewgroup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// proofs are the statements that justify the messages of a Member and of other peers: see Statement.
type proofs struct {
	self   int
	ids    map[int]p2ppeer.ID  // of the peers in the log; shared with the Member
	told   map[int]p2ppeer.ID  // of others
	store  *raft.MemoryStorage // the log, shared with the Member
	voters []uint32            // in ascending order, as far as this peer knows
	verify Verify
	signer Signer
	found  error // names a peer that contradicts itself; nil if there is none

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

func newProofs(c Config, store *raft.MemoryStorage) *proofs {
	return &proofs{
		self: c.Self, ids: c.IDs, told: c.Told, store: store, verify: c.Verify, signer: c.Sign, term: 1,
		requests: make(map[int]*raftpb.Message), terms: make(map[int]uint64), follows: make(map[int]uint64),
		heads: make(map[int]*Statement), newcomers: make(map[int]*pb.Newcomer),
	}
}

// incoming is a message that another peer has sent.
type incoming struct {
	from   int
	raft   *raftpb.Message
	msg    *Message
	status raft.BasicStatus // of this peer
	behind bool             // this peer hears no leader, so that its log may be behind
}

// maxTerms bounds the terms by which another peer can be ahead of this one. A candidate chooses its term, and
// there are only 2^64.
const maxTerms = 1 << 20

var errUnjustified = errors.New("message without its justification")

// justified reports whether the statements known here justify a message of the Raft library. A message that
// no correct peer sends is an error. One that this peer cannot judge is ignored: its log may be behind.
func (k *proofs) justified(in incoming) (ok bool, err error) {
	switch r := in.raft; r.GetType() {
	case raftpb.MsgPreVote:
		if len(r.GetContext()) > 0 || r.GetTerm() > k.term+maxTerms {
			return false, fmt.Errorf("%w: an election in term %d", errUnjustified, r.GetTerm())
		}
		return true, nil
	case raftpb.MsgPreVoteResp, raftpb.MsgVoteResp:
		if !r.GetReject() {
			return k.receiveBallot(in)
		}
	case raftpb.MsgVote:
		if len(r.GetContext()) > 0 && !handsOver(in.msg.GetStarts()) {
			return false, fmt.Errorf("%w: an election at once", errUnjustified)
		}
	case raftpb.MsgTimeoutNow:
		return k.receivePermit(in)
	case raftpb.MsgAppResp:
		if err := k.checkAcknowledgement(in); err != nil {
			return false, err
		}
	}
	return k.checkTerm(in)
}

// checkTerm reports whether the term of a message may begin, and whether its sender leads in it, if only a
// leader sends such a message.
func (k *proofs) checkTerm(in incoming) (ok bool, err error) {
	if starts, votes := len(in.msg.GetStarts()), len(in.msg.GetVotes()); max(starts, votes) > maxSigners {
		return false, fmt.Errorf("%w: %d and %d votes", errUnjustified, starts, votes)
	}
	switch term := in.raft.GetTerm(); {
	case isOfLeader(in.raft) && term >= k.term:
		return k.checkLeader(in)
	case term > k.term:
		return k.mayBegin(in)
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

// mayBegin reports whether a message shows that its term may begin, and records how.
func (k *proofs) mayBegin(in incoming) (ok bool, err error) {
	term, starts := in.raft.GetTerm(), in.msg.GetStarts()
	if len(starts) == 0 {
		return false, nil
	}
	for _, s := range starts {
		if s.GetTerm() == term && k.decidesElection(s) && k.isSigned(s) {
			k.shown = []*Statement{s}
			return true, nil
		}
	}
	for _, kind := range []pb.Statement_Kind{pb.Statement_START, pb.Statement_VOTE} {
		shown, err := k.signedOf(starts, kind, term, starts[0].GetCandidate())
		if err != nil {
			return false, err
		}
		if k.suffice(shown, in.behind) {
			k.shown = shown
			return true, nil
		}
	}
	return false, nil
}

// decidesElection reports whether the statement s alone allows an election: it is of the leader, which hands
// over, or of the submitter's peer, for itself.
func (k *proofs) decidesElection(s *Statement) bool {
	switch s.GetKind() {
	case pb.Statement_START:
		return s.GetBy() == submitterPeer && s.GetCandidate() == submitterPeer
	case pb.Statement_PERMIT:
		return k.leads > 0 && k.leads+1 == s.GetTerm() && k.leader == int(s.GetBy())
	}
	return false
}

// checkLeader reports whether the sender of a message leads in its term, and checks that the log of this
// peer is the sender's up to the entries in the message.
func (k *proofs) checkLeader(in incoming) (ok bool, err error) {
	r := in.raft
	if k.leads != r.GetTerm() || k.leader != in.from {
		if ok, err := k.acceptLeader(in); err != nil || !ok {
			return false, err
		}
	}
	hash, ok := k.log.at(r.GetIndex())
	if ok && r.GetType() == raftpb.MsgApp && k.termAt(r.GetIndex()) == r.GetLogTerm() && !bytes.Equal(hash, in.msg.GetPrevious()) {
		return false, fmt.Errorf("%w: another log up to entry %d of term %d", errUnjustified, r.GetIndex(), r.GetLogTerm())
	}
	for _, e := range r.GetEntries() {
		if r.GetTerm() == k.leads && e.GetIndex() <= k.matched && k.termAt(e.GetIndex()) != e.GetTerm() {
			k.blame(in.from) // this peer has signed the entry that is to be replaced
			return false, nil
		}
	}
	return true, nil
}

// acceptLeader reports whether a majority has elected the sender, or follows it, and records that it leads.
// For the submitter's peer it suffices that the term may begin.
func (k *proofs) acceptLeader(in incoming) (ok bool, err error) {
	term := in.raft.GetTerm()
	votes, err := k.signedOf(in.msg.GetVotes(), pb.Statement_VOTE, term, uint32(in.from))
	if err != nil {
		return false, err
	}
	elected := k.suffice(votes, in.behind) || k.suffice(k.followers(in.from, term), in.behind)
	switch {
	case in.from != submitterPeer && !elected:
		return false, nil
	case in.from != submitterPeer:
		k.shown = votes
	case term > k.term:
		if ok, err := k.mayBegin(in); err != nil || !ok {
			return false, err
		}
	}
	if k.leads == term { // two leaders in one term
		k.compareAll(k.votes, votes)
		return false, nil
	}
	k.leader, k.leads, k.votes, k.matched = in.from, term, votes, 0
	return true, nil
}

// followers returns the heads of the peers that have followed a leader in a term, as its own log shows.
func (k *proofs) followers(leader int, term uint64) (heads []*Statement) {
	for _, s := range k.heads {
		if s.GetTerm() == term && int(s.GetCandidate()) == leader {
			heads = append(heads, s)
		}
	}
	return heads
}

// termAt returns the term of an entry of this peer's log, or 0 if the log does not have the entry.
func (k *proofs) termAt(index uint64) uint64 {
	term, err := k.store.Term(index)
	if err != nil {
		return 0
	}
	return term
}

// receiveBallot records the signed vote or pre-vote of a peer.
func (k *proofs) receiveBallot(in incoming) (ok bool, err error) {
	kind, into, term := pb.Statement_VOTE, &k.elected, in.raft.GetTerm()
	wanted := in.status.RaftState == raft.StateCandidate && term == k.term
	if in.raft.GetType() == raftpb.MsgPreVoteResp {
		kind, into = pb.Statement_START, &k.granted
		wanted = in.status.RaftState == raft.StatePreCandidate && term == k.term+1
	}
	if !wanted { // it is late
		return false, nil
	}
	if !k.isBallot(in.msg.GetBallot(), kind, in.from, term) {
		return false, fmt.Errorf("%w: a vote that is not signed", errUnjustified)
	}
	into.add(in.msg.GetBallot())
	return true, nil
}

// isBallot reports whether s is a signed statement of a peer that this peer is its candidate in a term.
func (k *proofs) isBallot(s *Statement, kind pb.Statement_Kind, by int, term uint64) bool {
	return s.GetKind() == kind && int(s.GetBy()) == by && s.GetTerm() == term && int(s.GetCandidate()) == k.self && k.isSigned(s)
}

// receivePermit records the permission of the leader to hand over to this peer.
func (k *proofs) receivePermit(in incoming) (ok bool, err error) {
	if in.status.Lead != uint64(in.from)+1 || in.raft.GetTerm() != k.term {
		return false, nil
	}
	if !k.isBallot(in.msg.GetBallot(), pb.Statement_PERMIT, in.from, k.term+1) {
		return false, fmt.Errorf("%w: a handover that is not signed", errUnjustified)
	}
	k.permit = in.msg.GetBallot()
	return true, nil
}

// checkAcknowledgement checks the signed acknowledgement of a peer, if this peer leads and has to show it to
// others.
func (k *proofs) checkAcknowledgement(in incoming) error {
	r, s := in.raft, in.msg.GetBallot()
	if r.GetReject() || in.status.RaftState != raft.StateLeader || r.GetTerm() != k.term || k.self == submitterPeer {
		return nil
	}
	hash, ok := k.log.at(r.GetIndex())
	if s.GetKind() != pb.Statement_HEAD || int(s.GetBy()) != in.from || s.GetTerm() != r.GetTerm() || s.GetIndex() != r.GetIndex() || !ok {
		return fmt.Errorf("%w: an acknowledgement that is not signed", errUnjustified)
	}
	if !bytes.Equal(s.GetHash(), hash) {
		return fmt.Errorf("%w: an acknowledgement of another log", errUnjustified)
	}
	return k.receiveHead(s)
}

// receiveHeads records the heads of other peers' logs.
func (k *proofs) receiveHeads(heads []*Statement) error {
	if len(heads) > maxSigners {
		return fmt.Errorf("%w: %d logs", errUnjustified, len(heads))
	}
	for _, s := range heads {
		if err := k.receiveHead(s); err != nil {
			return err
		}
	}
	return nil
}

// receiveHead records the head of another peer's log, and compares it with what is known of that log: the
// peer's last head, and this peer's own log as far as that peer has dictated it as leader.
func (k *proofs) receiveHead(s *Statement) error {
	by := int(s.GetBy())
	last := k.heads[by]
	switch {
	case by == k.self || last != nil && bytes.Equal(last.GetSignature(), s.GetSignature()):
		return nil
	case s.GetKind() != pb.Statement_HEAD || len(s.GetHash()) != hashSize:
		return fmt.Errorf("%w: %v as the head of a log", errUnjustified, s.GetKind())
	case !k.isSigned(s):
		if _, known := k.ids[by]; known {
			return fmt.Errorf("%w: a log of peer %d that it has not signed", errUnjustified, by)
		}
		return nil // a newcomer that is not in the log here yet
	}
	if last != nil && k.compare(last, s) {
		return nil
	}
	// An entry of an earlier term may be that of a liar who led then.
	dictated := k.leads == s.GetTerm() && k.leader == by && s.GetIndex() <= k.matched && k.termAt(s.GetIndex()) == s.GetTerm()
	if hash, ok := k.log.at(s.GetIndex()); ok && dictated && !bytes.Equal(hash, s.GetHash()) {
		k.blame(by)
		return nil
	}
	if last == nil || last.GetTerm() < s.GetTerm() || last.GetTerm() == s.GetTerm() && last.GetIndex() <= s.GetIndex() {
		k.heads[by] = s
	}
	return nil
}

// committed returns the index up to which the heads of a majority of the voters show that the log of this
// peer is committed in a term.
func (k *proofs) committed(term uint64) (index uint64) {
	var heads []*Statement
	for _, s := range k.heads {
		hash, ok := k.log.at(s.GetIndex())
		if s.GetTerm() == term && ok && k.termAt(s.GetIndex()) == term && bytes.Equal(hash, s.GetHash()) {
			heads = append(heads, s)
		}
	}
	slices.SortFunc(heads, func(a, b *Statement) int { return int(b.GetIndex()) - int(a.GetIndex()) })
	for i, s := range heads {
		if k.suffice(heads[:i+1], true) {
			return s.GetIndex()
		}
	}
	return 0
}
