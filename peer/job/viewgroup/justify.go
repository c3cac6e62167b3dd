package viewgroup

import (
	"cmp"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// noteTerm records what shows that this peer's term may have begun, and that it leads. It runs before new
// entries are appended, so that the last entry is the one with which this peer was a candidate. It reports
// whether the term is new.
func (k *proofs) noteTerm(status raft.BasicStatus) (begins bool) {
	term := status.GetTerm()
	begins, k.commit = term != k.term, status.GetCommit()
	elects := status.RaftState == raft.StateCandidate || status.RaftState == raft.StateLeader
	if begins {
		k.term = term
		switch {
		case !elects:
			k.starts = k.shown
		case k.permit.GetTerm() == term:
			k.starts = []*Statement{k.permit, k.sign(k.ballot(pb.Statement_START, term))}
		default:
			k.starts = k.granted.in(term, k.sign(k.ballot(pb.Statement_START, term)))
		}
	}
	if status.RaftState == raft.StateLeader && (k.leads != term || k.leader != k.self) {
		k.leader, k.leads = k.self, term
		k.votes = k.elected.in(term, k.sign(k.ballot(pb.Statement_VOTE, term)))
		clear(k.claims)
	}
	return begins
}

// ballot returns this peer's statement about itself as a candidate.
func (k *proofs) ballot(kind pb.Statement_Kind, term uint64) *Statement {
	last, _ := k.store.LastIndex()
	return &Statement{Kind: kind, Term: term, Candidate: uint32(k.self), Index: last, LastTerm: k.termAt(last)}
}

// justify adds to msg the statements that justify r.
func (k *proofs) justify(msg *Message, r *raftpb.Message) {
	to := int(r.GetTo()) - 1
	switch r.GetType() {
	case raftpb.MsgPreVoteResp, raftpb.MsgVoteResp:
		if !r.GetReject() {
			msg.Ballot = k.grant(to, r)
		}
	case raftpb.MsgTimeoutNow:
		msg.Ballot = k.sign(&Statement{Kind: pb.Statement_PERMIT, Term: r.GetTerm() + 1, Candidate: uint32(to)})
	case raftpb.MsgAppResp:
		if !r.GetReject() && r.GetIndex() > 0 && k.leads == r.GetTerm() && k.leader == to {
			k.matched = max(k.matched, r.GetIndex())
			if to != k.submitter {
				msg.Ballot = k.headAt(r.GetIndex())
			}
		}
	case raftpb.MsgHeartbeatResp: // the voters that this peer knows may have changed since its acknowledgement
		if k.matched > 0 && k.leads == r.GetTerm() && k.leader == to && to != k.submitter {
			msg.Ballot = k.headAt(k.matched)
		}
	case raftpb.MsgApp:
		msg.Previous, _ = k.log.at(r.GetIndex())
	}
	asks := r.GetType() == raftpb.MsgPreVote // in the next term, which has yet to begin
	if r.GetType() == raftpb.MsgVote || (asks || r.GetTerm() == k.term) && k.terms[to] < k.term {
		msg.Starts = k.starts
	}
	if isOfLeader(r) && k.self != k.submitter {
		if k.follows[to] < k.term {
			msg.Votes = k.votes
		}
		msg.Heads = k.headsInTerm()
		if head := k.headAt(r.GetIndex() + uint64(len(r.GetEntries()))); len(r.GetEntries()) > 0 && !slices.Contains(msg.GetHeads(), head) {
			msg.Heads = append(msg.Heads[:min(len(msg.Heads), maxSigners-1)], head)
		}
	}
	if len(msg.GetStarts()) > 0 || len(msg.GetVotes()) > 0 {
		msg.Signers = k.newcomersIn(msg.GetStarts(), msg.GetVotes(), msg.GetHeads())
	}
}

// newcomersIn returns the newcomers that have signed the statements: a peer whose log is behind may not know them.
func (k *proofs) newcomersIn(statements ...[]*Statement) (signers []*pb.Newcomer) {
	for _, s := range slices.Concat(statements...) {
		if n := k.newcomers[int(s.GetBy())]; n != nil && !slices.Contains(signers, n) {
			signers = append(signers, n)
		}
	}
	return signers[:min(len(signers), maxSigners)]
}

// grant returns the signed form of a granted vote or pre-vote.
func (k *proofs) grant(to int, r *raftpb.Message) *Statement {
	kind, request := pb.Statement_VOTE, k.requests[to]
	if r.GetType() == raftpb.MsgPreVoteResp {
		kind = pb.Statement_START
	}
	return k.sign(&Statement{Kind: kind, Term: r.GetTerm(), Candidate: uint32(to), Index: request.GetIndex(), LastTerm: request.GetLogTerm()})
}

// headAt returns the signed head of this peer's log up to an entry. The latest one is kept.
func (k *proofs) headAt(index uint64) *Statement {
	hash, ok := k.log.at(index)
	if !ok {
		return nil
	}
	last := k.heads[k.self]
	if last.GetTerm() == k.term && last.GetIndex() == index && slices.Equal(last.GetVoters(), k.voters) {
		return last
	}
	s := k.sign(&Statement{Kind: pb.Statement_HEAD, Term: k.term, Candidate: uint32(k.leader), Index: index, LastTerm: k.termAt(index), Hash: hash})
	if last.GetTerm() < s.GetTerm() || last.GetIndex() <= index {
		k.heads[k.self] = s
	}
	return s
}

// headsInTerm returns the heads of the current term that are known to this peer, which leads.
func (k *proofs) headsInTerm() (heads []*Statement) {
	last, _ := k.store.LastIndex()
	k.headAt(last)
	for _, s := range k.heads {
		if s.GetTerm() == k.term {
			heads = append(heads, s)
		}
	}
	votes := func(s *Statement) int { return slices.Index(k.voters, s.GetBy()) }
	slices.SortFunc(heads, func(a, b *Statement) int { // voters first
		return cmp.Or(cmp.Compare(votes(b), votes(a)), cmp.Compare(b.GetIndex(), a.GetIndex()), cmp.Compare(a.GetBy(), b.GetBy()))
	})
	return heads[:min(len(heads), maxSigners)]
}

// followedHeads returns the heads of this peer's log and of its leader's, if this peer votes. The voters send
// them to each other now and then, so that they notice a leader that gives them different logs. A leader that
// is the submitter's peer is trusted.
func (k *proofs) followedHeads() (heads []*Statement) {
	follows := k.leads == k.term && k.leader != k.self && k.matched > 0
	if !follows || k.leader == k.submitter || !slices.Contains(k.voters, uint32(k.self)) {
		return nil
	}
	heads = []*Statement{k.headAt(k.matched)}
	if k.last != nil {
		heads = append(heads, k.last)
	}
	return heads
}

// takeConflict returns, once, the heads of the leader that have ended this peer's part. Each peer compares them
// with its own log, so they may come from anyone.
func (k *proofs) takeConflict() []*Statement {
	conflict := k.conflict
	if k.conflict = nil; conflict == nil || k.last == nil {
		return nil
	}
	return []*Statement{k.last, conflict}
}

// blame records that a leader has sent different logs to different peers, or a log that it was not elected
// with. No peer can tell which of two views others have acted on, so this ends the peer's part in the group.
func (k *proofs) blame(peer int) {
	id, _ := k.identity(peer)
	k.found = fmt.Errorf("view group: peer %s has told different peers different views", id)
}

// blameBoth blames a peer that has voted for two leaders of one term.
func (k *proofs) blameBoth(as, bs []*Statement) {
	for _, s := range as {
		if slices.ContainsFunc(bs, func(other *Statement) bool { return other.GetBy() == s.GetBy() }) {
			k.blame(int(s.GetBy()))
			return
		}
	}
	k.found = errDivided
}
