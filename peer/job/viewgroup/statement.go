package viewgroup

import (
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// A Statement is what a member signs about elections and about its log. The Raft library trusts each
// message; a Member passes a message to it only if signed statements justify the message (V4):
//
//	a term that this peer does not know   START of a majority of the voters: each of them has granted a
//	                                      pre-vote; or PERMIT of the leader, which hands over; or START or
//	                                      ORDER of the submitter's peer, under any of its numbers; or VOTE of
//	                                      a majority
//	a leader                              VOTE of a majority of the voters
//	a granted vote, an acknowledgement    VOTE, START or HEAD of the sender
//	a committed entry                     HEAD of a majority of the voters: the log up to the entry, in
//	                                      the leader's term
//	entries, relayed or not               HEAD of the leader: the log up to the last of them
//	a change of the voters                HEAD of a majority of the voters, in one term, or COMMIT of the
//	                                      submitter's peer: the log up to the previous change or beyond
//
// The submitter's peer needs no votes and no HEAD, since the job is its own.
type Statement = pb.Statement

// maxSigners bounds the signers of one statement. It exceeds the number of voters, also while some are being replaced.
const maxSigners = 4 * maxMembers

// maxFormer bounds the earlier sets of voters that are kept.
const maxFormer = 64

// setVoters records the present voters.
func (k *proofs) setVoters(voters []uint32) {
	if slices.Equal(voters, k.voters) {
		return
	}
	k.formerVoters = append(k.formerVoters[max(0, len(k.formerVoters)-maxFormer+1):], k.voters)
	k.voters = voters
}

// text returns the text that s signs, without the name of the job.
func text(s *Statement) []byte {
	return fmt.Appendf(nil, "%v of peer %d in term %d: candidate %d, entry %d of term %d, log %x, voters %v",
		s.GetKind(), s.GetBy(), s.GetTerm(), s.GetCandidate(), s.GetIndex(), s.GetLastTerm(), s.GetHash(), s.GetVoters())
}

// sign signs a statement of this peer.
func (k *proofs) sign(s *Statement) *Statement {
	s.By, s.Voters = uint32(k.self), k.voters
	s.Signature = k.signer(text(s))
	return s
}

// identity returns the ID of the peer with a number.
func (k *proofs) identity(number int) (id p2ppeer.ID, known bool) {
	if id, known = k.ids[number]; !known {
		id, known = k.told[number]
	}
	return id, known
}

// maxStatement bounds the size of a statement in bytes. Unknown fields count too, although no signature covers them:
// a leader adds statements of other peers to its log.
const maxStatement = 1 << 10

// isSigned reports whether the peer that s names has signed s.
func (k *proofs) isSigned(s *Statement) bool {
	id, known := k.identity(int(s.GetBy()))
	return known && len(s.GetVoters()) <= maxSigners && proto.Size(s) <= maxStatement && k.verify(id, text(s), s.GetSignature())
}

// signedOf returns the statements of a kind and a term about a candidate, one of each peer. A statement that its
// peer has not signed is an error.
func (k *proofs) signedOf(all []*Statement, kind pb.Statement_Kind, term uint64, candidate uint32) (signed []*Statement, err error) {
	for _, s := range all {
		repeated := slices.ContainsFunc(signed, func(other *Statement) bool { return other.GetBy() == s.GetBy() })
		_, known := k.identity(int(s.GetBy()))
		if s.GetKind() != kind || s.GetTerm() != term || s.GetCandidate() != candidate || repeated || !known {
			continue
		}
		if !k.isSigned(s) {
			return nil, fmt.Errorf("%w: %v of peer %d that it has not signed", errUnjustified, kind, s.GetBy())
		}
		signed = append(signed, s)
	}
	return signed, nil
}

// suffice reports whether the statements are those of a majority of the voters. The log of this peer may be
// behind, so that it does not know the voters. It then believes one of the statements about them if another
// one confirms it, since one of two peers at least is honest. Two peers may differ by one voter, whose change
// only one of them knows.
func (k *proofs) suffice(statements []*Statement, behind bool) bool {
	if isMajority(statements, k.voters) {
		return true
	}
	for _, s := range statements {
		confirmed := slices.ContainsFunc(statements, func(other *Statement) bool {
			return other.GetBy() != s.GetBy() && differences(s.GetVoters(), other.GetVoters()) <= 1
		})
		if behind && confirmed && isMajority(statements, s.GetVoters()) {
			return true
		}
	}
	return false
}

// differences returns the number of voters that are in one of two sets.
func differences(a, b []uint32) (n int) {
	for _, sets := range [][2][]uint32{{a, b}, {b, a}} {
		for _, voter := range sets[0] {
			if !slices.Contains(sets[1], voter) {
				n++
			}
		}
	}
	return n
}

// isMajority reports whether more than half of the voters have signed one of the statements.
func isMajority(statements []*Statement, voters []uint32) bool {
	n := 0
	for _, s := range statements {
		if slices.Contains(voters, s.GetBy()) {
			n++
		}
	}
	return 2*n > len(voters)
}

// isOfSubmitter reports whether a number is one of the submitter's peer, as far as this peer knows.
func (k *proofs) isOfSubmitter(number int) bool {
	id, known := k.identity(number)
	return known && id == k.ids[submitterPeer]
}
