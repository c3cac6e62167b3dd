package viewgroup

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// relay adds to msg, for the submitter's peer to which it goes, the entries of the leader after an index, up to the last one
// that the leader has signed. It reports whether it did so.
func (k *proofs) relay(msg *Message, after uint64) bool {
	last := k.last.GetIndex()
	if k.leads != k.term || k.leader == k.self || k.leader == k.submitter || after < 1 || after > last {
		return false
	}
	var entries []*raftpb.Entry
	if after < last {
		var err error
		if entries, err = k.store.Entries(after+1, last+1, math.MaxUint64); err != nil {
			return false
		}
	}
	r := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: new(uint64(k.leader) + 1), To: new(uint64(msg.GetTo()) + 1), Term: new(k.term),
		Index: &after, LogTerm: new(k.termAt(after)), Entries: entries, Commit: new(min(k.commit, last)),
	}
	b, err := proto.Marshal(r)
	if err != nil || len(b) > maxRelayed {
		return false
	}
	msg.Raft, msg.Starts, msg.Votes = b, k.starts, k.votes
	msg.Previous, _ = k.log.at(after)
	msg.Heads = append([]*Statement{k.last, k.headAt(k.matched)}, k.headsOfOthers()...)
	msg.Heads = msg.Heads[:min(len(msg.Heads), maxSigners)]
	msg.Signers = k.newcomersIn(msg.GetStarts(), msg.GetVotes(), msg.GetHeads())
	return true
}

// headsOfOthers returns the heads of other followers of the leader in the current term.
func (k *proofs) headsOfOthers() (heads []*Statement) {
	for _, by := range slices.Sorted(maps.Keys(k.heads)) {
		if s := k.heads[by]; s.GetTerm() == k.term && by != k.self && by != k.leader {
			heads = append(heads, s)
		}
	}
	return heads
}

// maxRelayed bounds the entries in one relayed message, in bytes: half of a message.
const maxRelayed = 2 * maxAppend

// relayedHead returns the last entry of the log that results from the entries in r, and the hash of that log.
func (k *proofs) relayedHead(r *raftpb.Message) (last uint64, hash []byte) {
	last = r.GetIndex() + uint64(len(r.GetEntries()))
	before := r.GetIndex() - 1 // length of the chain, which begins with the second entry
	hash, _ = k.log[:before:before].append(r.GetEntries()).at(last)
	return last, hash
}

// signedByLeader returns the statement in msg with which the leader has signed the log that results from the entries in r,
// or nil.
func (k *proofs) signedByLeader(msg *Message, r *raftpb.Message) *Statement {
	last, hash := k.relayedHead(r)
	i := slices.IndexFunc(msg.GetHeads(), func(s *Statement) bool {
		return s.GetKind() == pb.Statement_HEAD && uint64(s.GetBy())+1 == r.GetFrom() && s.GetTerm() == r.GetTerm() &&
			s.GetIndex() == last && bytes.Equal(s.GetHash(), hash) && k.isSigned(s)
	})
	if i < 0 {
		return nil
	}
	return msg.GetHeads()[i]
}

// signsEntries reports whether the leader has signed the entries in its message. Peers could relay no others. The library
// refuses entries that do not follow this peer's log.
func (k *proofs) signsEntries(in incoming) bool {
	r := in.raft
	if len(r.GetEntries()) == 0 || r.GetTerm() != k.leads || k.isOfSubmitter(in.from) || !k.continues(r) {
		return true
	}
	s := k.signedByLeader(in.msg, r)
	if s == nil {
		return false
	}
	k.keep(s)
	return k.found == nil
}

// keep records a head of the leader for entries that this peer is about to accept. It may have come before this peer knew
// who leads, and may be far beyond this peer's log.
func (k *proofs) keep(s *Statement) {
	k.claim(s)
	k.claims[s.GetIndex()] = s
}

// continues reports whether the entries in r follow an entry of this peer's log.
func (k *proofs) continues(r *raftpb.Message) bool {
	_, ok := k.log.at(r.GetIndex())
	return ok && k.termAt(r.GetIndex()) == r.GetLogTerm()
}
