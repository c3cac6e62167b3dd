package viewgroup

import (
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup/internal/pb"
)

// A Newcomer is a peer that comes while the job runs, with a process that is to join its
// rank. Its number is higher than those of all who came before, even if it has had one.
//
//	submitter's peer                    others              newcomer
//	  Introduce
//	  leads: a learner, with its row ──> log ──────────────> log, from its beginning
//	                                  Newcomer               │
//	      <──────────────────────────────────────────────────┘ it answers
//	  leads, or another: a member, if one is missing
//
// What is proposed here after it comes after it in the log: so when its process is in the
// view, all who hear of that know where it is, and its peer has the views from them.
type Newcomer struct {
	Peer    int // number
	ID      p2ppeer.ID
	Process view.Process
	Row     []byte // all that others have to know of it; means nothing here
}

// Introduce asks for a peer to be taken in. Only the submitter's peer does so: it
// finds them.
func (m *Member) Introduce(n Newcomer) Output {
	if !m.gone[uint64(n.Peer)+1] {
		m.newcomers = append(m.newcomers, n)
	}
	m.attempt(func() error { m.tend(); return nil })
	return m.ready()
}

// introduction is the change of the membership that takes n in.
func (n Newcomer) introduction() *raftpb.ConfChange {
	context, err := proto.Marshal(&pb.Newcomer{
		Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica), Row: n.Row,
	})
	if err != nil {
		panic(err) // of a text that is not UTF-8; it has none
	}
	return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(n.Peer) + 1), Context: context}
}

// welcome takes note of a newcomer, if c brings one. A message of a member that lies
// ends here.
func (m *Member) welcome(out *Output, c *raftpb.ConfChange) {
	if c.GetType() != raftpb.ConfChangeAddLearnerNode || len(c.GetContext()) == 0 {
		return
	}
	var told pb.Newcomer
	err := proto.Unmarshal(c.GetContext(), &told)
	n := Newcomer{
		Peer: int(c.GetNodeId()) - 1, ID: p2ppeer.ID(told.Peer),
		Process: view.Process{Rank: int(told.Rank), Replica: int(told.Replica)}, Row: told.Row,
	}
	if err != nil || n.Peer < m.config.Peers || n.Peer >= m.config.maxPeers() || n.Process.Rank >= m.view.N || n.Process.Replica >= view.MaxReplicas {
		panic("a newcomer that nobody introduces")
	}
	m.config.RunsOn[n.Process] = n.Peer
	m.newcomers = slices.DeleteFunc(m.newcomers, func(w Newcomer) bool { return w.Peer == n.Peer })
	out.Came = append(out.Came, n)
}

// maxPeers bounds the peers that a job has in all: each that comes has a process that no
// other has had.
func (c Config) maxPeers() int { return c.Peers + view.MaxReplicas*c.View.N }
