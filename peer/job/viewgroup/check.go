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
	self      int
	submitter int                 // last number of the submitter's peer, which the submitter has signed
	ids       map[int]p2ppeer.ID  // of the peers in the log; shared with the Member
	told      map[int]p2ppeer.ID  // of newcomers that are not in the log here yet
	store     *raft.MemoryStorage // the log, shared with the Member
	voters    []uint32            // in ascending order, as far as this peer knows
	verify    Verify
	signer    Signer

	formerVoters [][]uint32  // the last earlier sets of voters
	changed      voterChange // last one that is applied
	found        error       // ends this peer's part in the group; see blame

	log      chain                   // of this peer's log
	commit   uint64                  // last committed entry
	requests map[int]*raftpb.Message // last request of each peer for a vote or a pre-vote
	terms    map[int]uint64          // latest term of each peer
	follows  map[int]uint64          // latest term in which each peer has followed this one

	term   uint64       // latest term of this peer
	starts []*Statement // show that this term may begin
	shown  []*Statement // show that the term of the message being handled may begin
	permit *Statement   // last permission of the leader, or order of the submitter's peer, that this peer be a candidate; or nil

	granted ballots // pre-votes for this peer
	elected ballots // votes for this peer

	leader  int          // the leader that is known to be elected
	leads   uint64       // its term; 0 if there is none
	votes   []*Statement // for it
	matched uint64       // last entry that this peer has acknowledged to it in that term

	claims   map[uint64]*Statement // heads of the leader beyond attested, by index, from any peer
	attested uint64                // highest entry at which a head of the leader has matched this peer's log
	last     *Statement            // that head
	conflict *Statement            // a head of the leader that does not match, which ends this peer's part

	heads     map[int]*Statement   // latest of each voter, this peer included
	knows     map[int][]uint32     // the voters, as far as each follower knows by its own account
	newcomers map[int]*pb.Newcomer // whose statements other peers may have to check, by number
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
		self: c.Self, submitter: c.Submitter, ids: c.IDs, told: c.Told, store: store, verify: c.Verify, signer: c.Sign, term: 1,
		requests: make(map[int]*raftpb.Message), terms: make(map[int]uint64), follows: make(map[int]uint64),
		heads: make(map[int]*Statement), knows: make(map[int][]uint32), claims: make(map[uint64]*Statement), newcomers: make(map[int]*pb.Newcomer),
	}
}

// incoming is a message that another peer has sent.
type incoming struct {
	from   int
	raft   *raftpb.Message
	msg    *Message
	status raft.BasicStatus // of this peer
	behind bool             // this peer hears no leader, so that its log may be behind
	calm   bool             // it has heard a leader, or begun a term, too recently for an election
}

var errUnjustified = errors.New("message without its justification")

// justified reports whether the statements known here justify a message of the Raft library. A message that
// no correct peer sends is an error. One that this peer cannot judge is ignored: its log may be behind.
func (k *proofs) justified(in incoming) (ok bool, err error) {
	if starts, votes := len(in.msg.GetStarts()), len(in.msg.GetVotes()); max(starts, votes) > maxSigners {
		return false, fmt.Errorf("%w: %d and %d votes", errUnjustified, starts, votes)
	}
	r := in.raft
	switch granted := !r.GetReject(); r.GetType() {
	case raftpb.MsgPreVote:
		return k.mayAsk(in)
	case raftpb.MsgVote:
		return k.isCandidate(in)
	case raftpb.MsgTimeoutNow:
		return k.receivePermit(in)
	case raftpb.MsgPreVoteResp, raftpb.MsgVoteResp:
		if granted {
			return k.receiveBallot(in)
		}
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		if r.GetTerm() >= k.term {
			return k.checkLeader(in)
		}
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		if err := k.checkAcknowledgement(in); err != nil {
			return false, err
		}
	}
	if r.GetTerm() > k.term {
		k.shown, err = k.beginning(r.GetTerm(), in)
		return k.shown != nil, err
	}
	return true, nil
}

// maxAhead bounds the terms for which a peer gets pre-votes, counted from the last term that it can show. Peers
// that do not know who votes may have begun a few terms that they cannot show to others.
const maxAhead = 8

// mayAsk reports whether a peer may ask for a pre-vote: only for one of the next terms, and after a time without
// a leader, so that it can collect few pre-votes for later. The submitter's peer may ask at any time, for any
// term.
func (k *proofs) mayAsk(in incoming) (ok bool, err error) {
	if len(in.raft.GetContext()) > 0 {
		return false, fmt.Errorf("%w: a pre-vote that is forced", errUnjustified)
	}
	if in.calm && in.from != k.submitter {
		return false, nil
	}
	return in.from == k.submitter || in.raft.GetTerm() <= k.term+maxAhead, nil
}

// isCandidate reports whether the sender may be a candidate in the term of its message. Only a permission, or
// the decision of the submitter's peer, allows it to be one beside a leader.
func (k *proofs) isCandidate(in incoming) (ok bool, err error) {
	if in.raft.GetTerm() < k.term {
		return true, nil // without effect
	}
	shown, err := k.beginning(in.raft.GetTerm(), in)
	if shown == nil || int(shown[0].GetCandidate()) != in.from || len(in.raft.GetContext()) > 0 && !k.decidesElection(shown[0]) {
		return false, err
	}
	k.shown = shown
	return true, nil
}

// isOfLeader reports whether only a leader sends a message.
func isOfLeader(r *raftpb.Message) bool {
	return r.GetType() == raftpb.MsgApp || r.GetType() == raftpb.MsgHeartbeat
}

// beginning returns the statements in a message that show that a term may begin, or nil. A majority of earlier
// voters suffices: a peer that was cut off with them may have begun a term, and could not follow a lower one.
func (k *proofs) beginning(term uint64, in incoming) (shown []*Statement, err error) {
	starts := in.msg.GetStarts()
	if len(starts) == 0 {
		return nil, nil
	}
	for _, decides := range []func(*Statement) bool{k.isDecision, k.decidesElection} { // any peer can check the former
		for _, s := range starts {
			if s.GetTerm() == term && decides(s) && k.isSigned(s) {
				return []*Statement{s}, nil
			}
		}
	}
	for _, kind := range []pb.Statement_Kind{pb.Statement_START, pb.Statement_VOTE} {
		shown, err := k.signedOf(starts, kind, term, starts[0].GetCandidate())
		if err != nil {
			return nil, err
		}
		if k.suffice(shown, in.behind) || slices.ContainsFunc(k.formerVoters, func(v []uint32) bool { return isMajority(shown, v) }) {
			return shown, nil
		}
	}
	return nil, nil
}

// isDecision reports whether a process of the submitter, the last one or an earlier one, has decided that there is an
// election in the term of s.
func (k *proofs) isDecision(s *Statement) bool {
	return k.isOfSubmitter(int(s.GetBy())) && (s.GetKind() == pb.Statement_ORDER || s.GetKind() == pb.Statement_START && s.GetCandidate() == s.GetBy())
}

// decidesElection reports whether s alone allows an election: the leader has signed it to hand over, or the
// submitter's peer has signed that it is a candidate, or that another peer has to be one.
func (k *proofs) decidesElection(s *Statement) bool {
	switch s.GetKind() {
	case pb.Statement_START:
		return int(s.GetBy()) == k.submitter && int(s.GetCandidate()) == k.submitter
	case pb.Statement_ORDER:
		return int(s.GetBy()) == k.submitter
	case pb.Statement_PERMIT:
		return k.leads > 0 && k.leads+1 == s.GetTerm() && k.leader == int(s.GetBy())
	}
	return false
}

// checkLeader reports whether the sender of a message leads in its term, and checks that its entries continue
// the log of this peer, and the log with which it was elected.
func (k *proofs) checkLeader(in incoming) (ok bool, err error) {
	r := in.raft
	if k.leads != r.GetTerm() || k.leader != in.from {
		if ok, err := k.acceptLeader(in); err != nil || !ok {
			return false, err
		}
	}
	hash, ok := k.log.at(r.GetIndex())
	if ok && r.GetType() == raftpb.MsgApp && k.termAt(r.GetIndex()) == r.GetLogTerm() && !bytes.Equal(hash, in.msg.GetPrevious()) {
		return false, nil // one of the two logs is that of an earlier leader that has lied; see withholds
	}
	for _, e := range r.GetEntries() {
		if e.GetIndex() <= k.attested && k.termAt(e.GetIndex()) != e.GetTerm() || !k.isElectedWith(e) {
			k.blame(in.from)
			return false, nil
		}
	}
	return !k.conflicts(in), nil
}

// conflicts reports whether an entry in a message of the leader differs from the entry with the same index and
// term in this peer's log. The library takes such entries for equal, and would mix two logs. A leader that has
// sent two entries in its own term is blamed.
func (k *proofs) conflicts(in incoming) bool {
	entries, before := in.raft.GetEntries(), in.raft.GetIndex()
	if before < 1 || before > uint64(len(k.log))+1 {
		return false // the library refuses entries after a gap
	}
	log := k.log[: before-1 : before-1].append(entries)
	for _, e := range entries {
		hash, ok := k.log.at(e.GetIndex())
		other, _ := log.at(e.GetIndex())
		if ok && k.termAt(e.GetIndex()) == e.GetTerm() && !bytes.Equal(hash, other) {
			if e.GetTerm() == in.raft.GetTerm() {
				k.blame(in.from)
			}
			return true
		}
	}
	return false
}

// isElectedWith reports whether the leader's entry fits its last entry as a candidate, which the votes name.
// Otherwise it was elected with a log that it does not have, and may lack committed entries.
func (k *proofs) isElectedWith(e *raftpb.Entry) bool {
	if len(k.votes) == 0 {
		return true // the submitter's peer, or a leader whose votes this peer could not check
	}
	switch last := k.votes[0]; {
	case e.GetIndex() > last.GetIndex():
		return e.GetTerm() == k.leads
	case e.GetIndex() == last.GetIndex():
		return e.GetTerm() == last.GetLastTerm()
	default:
		return e.GetTerm() <= last.GetLastTerm()
	}
}

// acceptLeader reports whether a majority has elected the sender, or follows it, and records that it leads.
// For the submitter's peer it suffices that the term may begin.
func (k *proofs) acceptLeader(in incoming) (ok bool, err error) {
	term := in.raft.GetTerm()
	votes, err := k.signedOf(in.msg.GetVotes(), pb.Statement_VOTE, term, uint32(in.from))
	if err != nil {
		return false, err
	}
	votes = alike(votes)
	shown := votes
	switch {
	case in.from == k.submitter && term > k.term:
		if shown, err = k.beginning(term, in); err != nil || shown == nil {
			return false, err
		}
	case in.from == k.submitter:
	case !k.suffice(votes, in.behind):
		if votes = nil; !k.suffice(k.followers(in.from, term), in.behind) {
			return false, nil
		}
	}
	if k.leads == term { // two leaders in one term
		k.blameBoth(k.votes, votes)
		return false, nil
	}
	if k.shown = shown; term == k.term && len(votes) > 0 {
		k.starts = votes // a peer that does not know who led before can check them too
	}
	k.leader, k.leads, k.votes, k.matched, k.attested, k.last = in.from, term, votes, 0, 0, nil
	clear(k.claims)
	if s := k.heads[in.from]; s.GetTerm() == term && in.from != k.submitter {
		k.claim(s)
	}
	return k.found == nil, nil
}

// alike returns the votes that name the same last entry as the first one.
func alike(votes []*Statement) []*Statement {
	return slices.DeleteFunc(votes, func(s *Statement) bool {
		return s.GetIndex() != votes[0].GetIndex() || s.GetLastTerm() != votes[0].GetLastTerm()
	})
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
	s, own := in.msg.GetBallot(), k.ballot(kind, term)
	if !k.isBallot(s, kind, in.from, term) || s.GetIndex() != own.GetIndex() || s.GetLastTerm() != own.GetLastTerm() {
		return false, fmt.Errorf("%w: a vote that is not signed", errUnjustified)
	}
	into.add(s)
	return true, nil
}

// isBallot reports whether s is a signed statement of a peer that this peer is its candidate in a term.
func (k *proofs) isBallot(s *Statement, kind pb.Statement_Kind, by int, term uint64) bool {
	return s.GetKind() == kind && int(s.GetBy()) == by && s.GetTerm() == term && int(s.GetCandidate()) == k.self && k.isSigned(s)
}

// receiveOrder records the order of the submitter's peer that this peer be a candidate in the next term.
func (k *proofs) receiveOrder(from int, s *Statement) (ok bool) {
	if from != k.submitter || !k.isBallot(s, pb.Statement_ORDER, from, k.term+1) {
		return false
	}
	k.permit = s
	return true
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
	index := r.GetIndex()
	if r.GetType() == raftpb.MsgHeartbeatResp {
		index = s.GetIndex() // the last entry that the peer has acknowledged, if any
	}
	leads := in.status.RaftState == raft.StateLeader && r.GetTerm() == k.term
	if r.GetReject() || !leads || index == 0 || k.self == k.submitter { // index 0: the peer tells its term
		return nil
	}
	hash, ok := k.log.at(index)
	if s.GetKind() != pb.Statement_HEAD || int(s.GetBy()) != in.from || s.GetTerm() != r.GetTerm() || s.GetIndex() != index || !ok {
		return fmt.Errorf("%w: an acknowledgement that is not signed", errUnjustified)
	}
	if !bytes.Equal(s.GetHash(), hash) {
		return fmt.Errorf("%w: an acknowledgement of another log", errUnjustified)
	}
	if len(s.GetVoters()) <= maxSigners {
		k.knows[in.from] = s.GetVoters()
	}
	if !slices.Contains(k.voters, s.GetBy()) && len(k.heads) >= maxSigners {
		return nil // only voters commit; a few others confirm who votes
	}
	return k.receiveHead(s)
}

// mayVote reports whether a follower knows who votes, or lacks only the last change. Otherwise the new voter
// could not tell what is committed, and the others might depend on it.
func (k *proofs) mayVote(peer int) bool {
	return k.self == k.submitter || differences(k.knows[peer], k.voters) <= 1
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

// receiveHead records the head of another peer's log. That of the leader is also compared with this peer's
// log.
func (k *proofs) receiveHead(s *Statement) error {
	by := int(s.GetBy())
	last := k.heads[by]
	_, known := k.ids[by]
	switch {
	case by == k.self || last != nil && bytes.Equal(last.GetSignature(), s.GetSignature()):
		return nil
	case s.GetKind() != pb.Statement_HEAD || len(s.GetHash()) != hashSize:
		return fmt.Errorf("%w: %v as the head of a log", errUnjustified, s.GetKind())
	case !k.isSigned(s) && known:
		return fmt.Errorf("%w: a log of peer %d that it has not signed", errUnjustified, by)
	case !k.isSigned(s):
		return nil // a newcomer that is not in the log here yet
	}
	if last == nil || last.GetTerm() < s.GetTerm() || last.GetTerm() == s.GetTerm() && last.GetIndex() <= s.GetIndex() {
		k.heads[by] = s
	}
	if by == k.leader && s.GetTerm() == k.leads && by != k.submitter {
		k.claim(s)
	}
	return nil
}

// maxClaims bounds how far beyond this peer's log the heads of the leader are kept.
const maxClaims = 1 << 10

// claim compares a head of the leader's log with the leader's other heads and with this peer's log.
//
//	up to attested    The leader has signed an entry of this peer's log, and so all before it. A head of
//	                  another log shows that it has told another peer something else.
//	beyond            The head waits until the leader has signed a later entry of this peer's log.
func (k *proofs) claim(s *Statement) {
	index := s.GetIndex()
	hash, ok := k.log.at(index)
	other := k.claims[index]
	switch last, _ := k.store.LastIndex(); {
	case index <= k.attested && !bytes.Equal(hash, s.GetHash()), other != nil && !bytes.Equal(other.GetHash(), s.GetHash()):
		k.conflict = s
		k.blame(int(s.GetBy()))
		return
	case ok && index <= k.commit && !bytes.Equal(hash, s.GetHash()):
		k.found = errDivided
		return
	case index > k.attested && index <= last+maxClaims:
		k.claims[index] = s
	}
	k.attest()
}

// errDivided ends this peer's part in the group: it has committed entries that the leader does not have. The
// leader or an earlier one has lied, or a voter that acknowledged them has not told the leader.
var errDivided = errors.New("view group: the leader does not have the views that were agreed on here")

// attest compares the leader's heads with this peer's log, which may have grown.
func (k *proofs) attest() {
	for index, s := range k.claims {
		if hash, ok := k.log.at(index); ok && bytes.Equal(hash, s.GetHash()) {
			if index >= k.attested {
				k.attested, k.last = index, s
			}
		}
	}
	for index, s := range k.claims {
		if index > k.attested {
			continue
		}
		if hash, _ := k.log.at(index); !bytes.Equal(hash, s.GetHash()) {
			k.conflict = s
			k.blame(int(s.GetBy()))
		}
		delete(k.claims, index)
	}
}

// withholds reports whether a majority of the voters has acknowledged entries to the leader that it has not
// sent to this peer, or that this peer cannot accept. Then its heartbeats are not contact with the majority.
func (k *proofs) withholds() bool {
	var ahead []*Statement
	for _, s := range k.heads {
		hash, ok := k.log.at(s.GetIndex())
		if s.GetTerm() == k.leads && int(s.GetBy()) != k.self && (!ok || !bytes.Equal(hash, s.GetHash())) {
			ahead = append(ahead, s)
		}
	}
	return k.suffice(ahead, true)
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
