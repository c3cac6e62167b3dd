package viewgroup

import (
	"bytes"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// A voterChange is an entry of the log that may change who votes. The leader appends one only if the previous one is
// committed, and the entry shows that (see Statement). Others do not accept it otherwise, and then know that the
// previous one is committed. The log of a peer thus has at most one voterChange that the peer does not know to be
// committed, whatever a leader that lies appends and conceals, so that each peer knows who votes and can be a candidate.
//
// Two majorities of sets that differ by one voter overlap. With two changes that are not known to be committed, a peer
// could be elected by peers of which none has an entry that the present voters have committed.
//
// The HEADs of one term show that a change is committed if they are those of a majority of the voters before it: a
// candidate without the change gets too few of their votes. Those of a majority of the voters after it suffice too, since
// a later leader may have no others, and a correct leader counts them only once the change is committed. A leader that
// lies may count them earlier (see suffice, and Limits in the documentation of the package). Whether the change has an
// effect (lawful) does not matter for this.
type voterChange struct {
	index         uint64   // 0: there is none
	before, after []uint32 // voters before it, and after it if it is lawful
}

// voterChangeIn returns the change of the membership in e if it may change who votes, else nil. The others introduce
// newcomers.
func voterChangeIn(e *raftpb.Entry) *raftpb.ConfChange {
	var c raftpb.ConfChange
	if e.GetType() != raftpb.EntryConfChange || proto.Unmarshal(e.GetData(), &c) != nil || isIntroduction(&c) {
		return nil
	}
	return &c
}

// isIntroduction reports whether a change of the membership introduces a newcomer, or another process of a peer. Who votes
// then stays the same.
func isIntroduction(c *raftpb.ConfChange) bool {
	var told pb.Newcomer
	return c.GetType() == raftpb.ConfChangeUpdateNode ||
		c.GetType() == raftpb.ConfChangeAddLearnerNode && proto.Unmarshal(c.GetContext(), &told) == nil && len(told.GetPeer()) > 0
}

// contextOf returns the context of a change of the membership that introduces no newcomer.
func contextOf(c *raftpb.ConfChange) *pb.VoterChange {
	told := &pb.VoterChange{}
	if proto.Unmarshal(c.GetContext(), told) != nil {
		return &pb.VoterChange{}
	}
	return told
}

// encode returns the context of a change of the membership that introduces no newcomer.
func encode(told *pb.VoterChange) []byte {
	b, err := proto.Marshal(told)
	if err != nil {
		panic(err) // only for text that is not UTF-8; the message has no text
	}
	return b
}

// newVoterChange returns the change c of the voters at an index.
func newVoterChange(voters []uint32, index uint64, c *raftpb.ConfChange) voterChange {
	id := uint32(c.GetNodeId() - 1)
	after := slices.DeleteFunc(slices.Clone(voters), func(voter uint32) bool { return voter == id })
	if c.GetType() == raftpb.ConfChangeAddNode {
		after = append(after, id)
	}
	return voterChange{index: index, before: voters, after: after}
}

// proof returns statements that show that a committed change is committed, or nil. This peer leads.
func (v voterChange) proof(k *proofs) []*Statement {
	if k.isOfSubmitter(k.self) {
		hash, _ := k.log.at(v.index)
		return []*Statement{k.sign(&Statement{Kind: pb.Statement_COMMIT, Term: k.term, Candidate: uint32(k.self), Index: v.index, Hash: hash})}
	}
	heads := slices.DeleteFunc(v.covering(k, k.headsInTerm()), func(s *Statement) bool {
		return s.GetCandidate() != uint32(k.self) // isSettled takes statements about one leader
	})
	if !v.isSettled(k, heads) {
		return nil
	}
	return heads
}

// isSettled reports whether the statements show that a change in this peer's log is committed.
func (v voterChange) isSettled(k *proofs, shown []*Statement) bool {
	if len(shown) == 1 && shown[0].GetKind() == pb.Statement_COMMIT {
		return k.isOfSubmitter(int(shown[0].GetBy())) && v.isCovered(k, shown[0]) && k.isSigned(shown[0])
	}
	covering := v.covering(k, shown)
	if len(covering) == 0 || len(shown) > maxSigners {
		return false
	}
	heads, err := k.signedOf(covering, pb.Statement_HEAD, covering[0].GetTerm(), covering[0].GetCandidate())
	return err == nil && (isMajority(heads, v.before) || isMajority(heads, v.after))
}

// covering returns the statements of the voters before and after a change about this peer's log with the change, up to
// an entry of the term of the statement: only such entries are committed by their own acknowledgements.
func (v voterChange) covering(k *proofs, shown []*Statement) (covering []*Statement) {
	for _, s := range shown {
		votes := slices.Contains(v.before, s.GetBy()) || slices.Contains(v.after, s.GetBy())
		if votes && v.isCovered(k, s) && k.termAt(s.GetIndex()) == s.GetTerm() {
			covering = append(covering, s)
		}
	}
	return covering
}

// isCovered reports whether the log in a statement is this peer's, and contains the change.
func (v voterChange) isCovered(k *proofs, s *Statement) bool {
	hash, ok := k.log.at(s.GetIndex())
	return ok && s.GetIndex() >= v.index && bytes.Equal(hash, s.GetHash())
}

// inParts returns a message of a leader in parts, so that each voterChange begins a part. The receiver has the log before
// the change then, and can check what the change shows. The leader signs the log up to the end of each part. A receiver
// that refuses a change has therefore no entries that the leader has not signed.
func inParts(r *raftpb.Message) (parts []*raftpb.Message) {
	if r.GetType() != raftpb.MsgApp {
		return []*raftpb.Message{r}
	}
	begin := func(index, term *uint64) {
		parts = append(parts, &raftpb.Message{Type: r.Type, From: r.From, To: r.To, Term: r.Term, Index: index, LogTerm: term, Commit: r.Commit})
	}
	begin(r.Index, r.LogTerm)
	for i, e := range r.GetEntries() {
		if i > 0 && voterChangeIn(e) != nil {
			before := r.GetEntries()[i-1]
			begin(before.Index, before.Term)
		}
		part := parts[len(parts)-1]
		part.Entries = append(part.Entries, e)
	}
	return parts
}
