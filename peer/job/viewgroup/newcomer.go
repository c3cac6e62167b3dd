package viewgroup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// A Newcomer is a peer that is introduced while the job runs, with a process that joins a rank. A peer that
// is not part of the job gets a number higher than all earlier ones, even if it had a number before. A peer
// that is part of it keeps its number and runs one more process. The introduction tells all members which
// peer decides about that process; the voters stay the same.
//
//	submitter's peer                    others              newcomer
//	  Introduce
//	  leads: a learner, with its row ──> log ──────────────> log, from its beginning
//	                                  Newcomer               │
//	      <──────────────────────────────────────────────────┘ it answers
//	  leads, or another: a member, if one is missing
//
// A member that knows of the newcomer proposes the process's join only after the newcomer is in the log.
// Once the process is in the view, all peers therefore know its peer, and that peer receives the views from
// them.
//
// A submitter outside the group sends the introduction to several members. The leader admits the newcomer
// if it received the introduction. The newcomer is admitted once, however many members are told, how often,
// and how late.
type Newcomer struct {
	Peer    int // lowest number not used before, or the number that the peer has
	ID      p2ppeer.ID
	Process view.Process
	Row     []byte // description of the process for other peers; opaque here

	Signature []byte // of the submitter's peer; required for admission
}

// Introduce asks to admit a peer that the submitter has found. The caller is the submitter's peer, or, if
// that is not part of the group, a member that it has told. A peer that cannot be admitted, or has been, is
// ignored.
func (m *Member) Introduce(n Newcomer) Output {
	if m.admissible(n) {
		m.newcomers = append(m.newcomers, n)
	}
	m.attempt(func() error { m.maintain(); return nil })
	return m.ready()
}

// admissible reports whether n can be admitted: n is valid, and no other peer has its number or its process.
func (m *Member) admissible(n Newcomer) bool {
	rows := len(n.Row)
	for _, other := range m.newcomers {
		rows += len(other.Row)
	}
	if !m.hasRoom(n) || !m.invited(n) || m.gone[uint64(n.Peer)+1] || len(m.newcomers) == m.view.N+view.MaxReplicas || rows > m.maxLog()/4 {
		return false // only a few may be pending at a time, for one rank each
	}
	for p, peer := range m.config.RunsOn {
		if p == n.Process || peer == n.Peer && !m.isMember(n) {
			return false
		}
	}
	return !slices.ContainsFunc(m.newcomers, n.excludes)
}

// invited reports whether the submitter has signed n.
func (m *Member) invited(n Newcomer) bool {
	return m.config.Verify(m.config.IDs[submitterPeer], n.statement(), n.Signature)
}

// isMember reports whether n is part of the group already and is introduced with one more process. It is
// false for the submitter's peer, which decides about every process and needs no introduction.
func (m *Member) isMember(n Newcomer) bool {
	return n.Peer != submitterPeer && n.ID != "" && m.config.IDs[n.Peer] == n.ID
}

// hasRoom reports whether the job has room for a newcomer with that number and process.
func (m *Member) hasRoom(n Newcomer) bool {
	return (m.isMember(n) || n.Peer >= m.config.Peers && n.Peer < m.config.maxPeers()) &&
		n.Process.Rank >= 0 && n.Process.Rank < m.view.N && n.Process.Replica >= 0 && n.Process.Replica < view.MaxReplicas
}

// excludes reports whether only one of the two newcomers can be admitted. A peer may run several processes.
func (n Newcomer) excludes(other Newcomer) bool {
	return n.Peer == other.Peer && n.ID != other.ID || n.Process == other.Process
}

// introduction returns the membership change that introduces n. If n is part of the group already, the
// change only carries the description of its process; whether n votes stays the same.
func (m *Member) introduction(n Newcomer) *raftpb.ConfChange {
	context, err := proto.Marshal(&pb.Newcomer{
		Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica), Row: n.Row, Signature: n.Signature,
	})
	if err != nil {
		panic(err) // only for text that is not UTF-8; the message has no text
	}
	kind := raftpb.ConfChangeAddLearnerNode
	if m.isMember(n) {
		kind = raftpb.ConfChangeUpdateNode
	}
	return &raftpb.ConfChange{Type: kind.Enum(), NodeId: new(uint64(n.Peer) + 1), Context: context}
}

// errUninvited is the error of a change that introduces no newcomer that the submitter has signed.
var errUninvited = errors.New("not a newcomer that the submitter has signed")

// newcomerIn returns the newcomer that c introduces.
func (m *Member) newcomerIn(c *raftpb.ConfChange) (n Newcomer, err error) {
	var told pb.Newcomer
	if err := proto.Unmarshal(c.GetContext(), &told); err != nil {
		return n, fmt.Errorf("%w: %w", errUninvited, err)
	}
	n = Newcomer{
		Peer: int(c.GetNodeId()) - 1, ID: p2ppeer.ID(told.Peer),
		Process: view.Process{Rank: int(told.Rank), Replica: int(told.Replica)}, Row: told.Row, Signature: told.Signature,
	}
	isNew := c.GetType() == raftpb.ConfChangeAddLearnerNode
	_, taken := m.config.RunsOn[n.Process]
	if !m.hasRoom(n) || !m.invited(n) || isNew == m.isMember(n) || taken {
		return n, errUninvited
	}
	return n, nil
}

// admitNewcomer records the newcomer that c introduces, if there is one.
func (m *Member) admitNewcomer(out *Output, c *raftpb.ConfChange) {
	if c.GetType() != raftpb.ConfChangeAddLearnerNode && c.GetType() != raftpb.ConfChangeUpdateNode {
		return
	}
	n, err := m.newcomerIn(c)
	if err != nil { // a voter that becomes a learner
		return
	}
	m.config.IDs[n.Peer] = n.ID
	m.config.RunsOn[n.Process] = n.Peer
	hash := sha256.Sum256(n.Row)
	m.proofs.newcomers[n.Peer] = &pb.Newcomer{
		Number: uint32(n.Peer), Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica),
		RowHash: hash[:], Signature: n.Signature,
	}
	m.newcomers = slices.DeleteFunc(m.newcomers, n.excludes)
	out.Came = append(out.Came, n)
}

// maxPeers bounds the number of all peers that the job ever has. Each newcomer has a process that no other
// peer has had.
func (c Config) maxPeers() int { return c.Peers + min(maxPeers, view.MaxReplicas*c.View.N) }

// receiveSigners records the identities of newcomers that are not in the log here yet, for their statements.
// The submitter has signed them.
func (m *Member) receiveSigners(signers []*pb.Newcomer) error {
	if len(signers) > maxSigners {
		return fmt.Errorf("%w: %d newcomers", errUnjustified, len(signers))
	}
	for _, s := range signers {
		number := int(s.GetNumber())
		if _, known := m.proofs.identity(number); known {
			continue
		}
		n := Newcomer{Peer: number, ID: p2ppeer.ID(s.GetPeer()), Process: view.Process{Rank: int(s.GetRank()), Replica: int(s.GetReplica())}}
		if !m.hasRoom(n) || !m.config.Verify(m.config.IDs[submitterPeer], n.statementOn(s.GetRowHash()), s.GetSignature()) {
			return fmt.Errorf("%w: newcomer %d is not invited", errUnjustified, number)
		}
		m.config.Told[number] = n.ID
	}
	return nil
}
