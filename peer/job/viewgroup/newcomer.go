package viewgroup

import (
	"errors"
	"fmt"

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
// The submitter's process may be killed. Its next process lacks what it has voted for and acknowledged, so it is a
// newcomer too, with NoProcess: it introduces itself to all members, in the first message of each stream. It has
// the rights of the submitter's peer from then on. The earlier number is removed once the new one is in the log.
//
// The newcomer is admitted once, however many members are told, how often, and how late.
type Newcomer struct {
	Peer    int // lowest number not used before, or the number that the peer has
	ID      p2ppeer.ID
	Process view.Process // NoProcess: a new process of the submitter
	Row     []byte       // description of the process for other peers; opaque here

	Signature []byte // of the submitter's peer; required for admission
}

// NoProcess is the process of a Newcomer that is a new process of the submitter.
var NoProcess = view.Process{Rank: -1, Replica: -1}

// invited reports whether the submitter has signed n.
func (c Config) invited(n Newcomer) bool {
	return c.Verify(c.IDs[submitterPeer], n.statement(), n.Signature)
}

// isMember reports whether n is part of the group already and is introduced with one more process. It is
// false for the submitter's peer, which decides about every process and needs no introduction.
func (c Config) isMember(n Newcomer) bool {
	return !c.isSubmitter(n.Peer) && n.ID != "" && c.IDs[n.Peer] == n.ID
}

// hasRoom reports whether the job has room for a newcomer with that number and process.
func (c Config) hasRoom(n Newcomer) bool {
	if n.Process == NoProcess {
		return n.ID == c.IDs[submitterPeer] && n.Peer >= c.Peers && n.Peer < c.maxPeers()
	}
	return (c.isMember(n) || n.Peer >= c.Peers && n.Peer < c.maxPeers()) &&
		n.Process.Rank >= 0 && n.Process.Rank < c.View.N && n.Process.Replica >= 0 && n.Process.Replica < view.MaxReplicas
}

// excludes reports whether only one of the two newcomers can be admitted. A peer may run several processes.
func (n Newcomer) excludes(other Newcomer) bool {
	if n.Process == NoProcess || other.Process == NoProcess {
		return n.Peer == other.Peer
	}
	return n.Peer == other.Peer && n.ID != other.ID || n.Process == other.Process
}

// introduction returns the membership change that introduces n. If n is part of the group already, the
// change only carries the description of its process; whether n votes stays the same.
func (c Config) introduction(n Newcomer) *raftpb.ConfChange {
	context, err := proto.Marshal(&pb.Newcomer{
		Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica), Row: n.Row, Signature: n.Signature,
	})
	if err != nil {
		panic(err) // only for text that is not UTF-8; the message has no text
	}
	kind := raftpb.ConfChangeAddLearnerNode
	if c.isMember(n) {
		kind = raftpb.ConfChangeUpdateNode
	}
	return &raftpb.ConfChange{Type: kind.Enum(), NodeId: new(uint64(n.Peer) + 1), Context: context}
}

// processIn returns the process in the encoded form of a newcomer.
func processIn(told *pb.Newcomer) view.Process {
	return view.Process{Rank: int(int32(told.GetRank())), Replica: int(int32(told.GetReplica()))} // of NoProcess too
}

// errUninvited is the error of a change that does not introduce a newcomer signed by the submitter.
var errUninvited = errors.New("not a newcomer that the submitter has signed")

// newcomerIn returns the newcomer that a change introduces.
func (c Config) newcomerIn(change *raftpb.ConfChange) (n Newcomer, err error) {
	var told pb.Newcomer
	if err := proto.Unmarshal(change.GetContext(), &told); err != nil {
		return n, fmt.Errorf("%w: %w", errUninvited, err)
	}
	n = Newcomer{
		Peer: int(change.GetNodeId()) - 1, ID: p2ppeer.ID(told.Peer),
		Process: processIn(&told), Row: told.Row, Signature: told.Signature,
	}
	isNew := change.GetType() == raftpb.ConfChangeAddLearnerNode
	_, taken := c.RunsOn[n.Process]
	if !c.hasRoom(n) || !c.invited(n) || isNew == c.isMember(n) || taken {
		return n, errUninvited
	}
	return n, nil
}

// maxPeers bounds the numbers of all peers that the job ever has. Each newcomer has a process that no other
// peer has had, or is a new process of the submitter.
func (c Config) maxPeers() int {
	return c.Peers + min(maxPeers, view.MaxReplicas*c.View.N) + maxSubmitters
}

// maxSubmitters bounds the processes of the submitter.
const maxSubmitters = 1 << 12
