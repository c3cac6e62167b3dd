package viewgroup

import (
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup/internal/pb"
)

// A Newcomer is a peer that is introduced while the job runs, with a process that is to join a rank. A peer
// that takes no part in the job gets a number higher than all earlier ones, even if it had a number before. A
// peer that takes part already keeps its number and runs one more process. It is introduced so that all members
// know which peer decides about that process; the voters stay the same.
//
//	submitter's peer                    others              newcomer
//	  Introduce
//	  leads: a learner, with its row ──> log ──────────────> log, from its beginning
//	                                  Newcomer               │
//	      <──────────────────────────────────────────────────┘ it answers
//	  leads, or another: a member, if one is missing
//
// That its process joins is proposed by who has heard of it only after it is in the log: so when
// the process is in the view, all who hear of that know where it is, and its peer has the views
// from them.
//
// A submitter that takes no part has several members introduce it. Whoever leads has it taken in,
// if it was told: once, whoever else is told, how often, and how late.
type Newcomer struct {
	Peer    int // the least number that no peer has had, or the number that the peer has
	ID      p2ppeer.ID
	Process view.Process
	Row     []byte // all that others have to know of it; means nothing here

	Signature []byte // of the submitter's peer, without which nobody comes
}

// Introduce asks for a peer to be taken in, which only a submitter finds: its peer, if that is
// one of those here, or each that a submitter has told which is none of them. One that cannot
// come, or has come, is not asked for.
func (m *Member) Introduce(n Newcomer) Output {
	if m.canCome(n) {
		m.newcomers = append(m.newcomers, n)
	}
	m.attempt(func() error { m.tend(); return nil })
	return m.ready()
}

// canCome reports whether n means something, and nobody has its number or its process.
func (m *Member) canCome(n Newcomer) bool {
	rows := len(n.Row)
	for _, other := range m.newcomers {
		rows += len(other.Row)
	}
	if !m.canBe(n) || !m.invited(n) || m.gone[uint64(n.Peer)+1] || len(m.newcomers) == m.view.N+view.MaxReplicas || rows > m.maxLog()/4 {
		return false // a few are on their way at a time, to one rank each
	}
	for p, peer := range m.config.RunsOn {
		if p == n.Process || peer == n.Peer && !m.has(n) {
			return false
		}
	}
	return !slices.ContainsFunc(m.newcomers, n.excludes)
}

// invited reports whether the submitter has signed n.
func (m *Member) invited(n Newcomer) bool {
	return m.config.Verify(m.config.IDs[submitterPeer], n.statement(), n.Signature)
}

// has reports whether n is a member already and is introduced with one more process. It is false for the
// submitter's peer, which decides about every process and needs no introduction.
func (m *Member) has(n Newcomer) bool {
	return n.Peer != submitterPeer && n.ID != "" && m.config.IDs[n.Peer] == n.ID
}

// canBe reports whether the job has room for a newcomer of that number and process.
func (m *Member) canBe(n Newcomer) bool {
	return (m.has(n) || n.Peer >= m.config.Peers && n.Peer < m.config.maxPeers()) &&
		n.Process.Rank >= 0 && n.Process.Rank < m.view.N && n.Process.Replica >= 0 && n.Process.Replica < view.MaxReplicas
}

// excludes reports whether only one of the two can be taken in. A peer may run several processes.
func (n Newcomer) excludes(other Newcomer) bool {
	return n.Peer == other.Peer && n.ID != other.ID || n.Process == other.Process
}

// introduction returns the membership change that introduces n. If n is a member already, the change only
// carries the description of its process: n votes, or does not vote, as before.
func (m *Member) introduction(n Newcomer) *raftpb.ConfChange {
	context, err := proto.Marshal(&pb.Newcomer{
		Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica), Row: n.Row, Signature: n.Signature,
	})
	if err != nil {
		panic(err) // of a text that is not UTF-8; it has none
	}
	kind := raftpb.ConfChangeAddLearnerNode
	if m.has(n) {
		kind = raftpb.ConfChangeUpdateNode
	}
	return &raftpb.ConfChange{Type: kind.Enum(), NodeId: new(uint64(n.Peer) + 1), Context: context}
}

// welcome takes note of a newcomer, if c brings one that the submitter has signed. Any other
// is ignored, by all members alike: a leader that lies made it up.
func (m *Member) welcome(out *Output, c *raftpb.ConfChange) {
	isNew := c.GetType() == raftpb.ConfChangeAddLearnerNode
	if !isNew && c.GetType() != raftpb.ConfChangeUpdateNode || len(c.GetContext()) == 0 {
		return
	}
	var told pb.Newcomer
	err := proto.Unmarshal(c.GetContext(), &told)
	n := Newcomer{
		Peer: int(c.GetNodeId()) - 1, ID: p2ppeer.ID(told.Peer),
		Process: view.Process{Rank: int(told.Rank), Replica: int(told.Replica)}, Row: told.Row, Signature: told.Signature,
	}
	if err != nil || !m.canBe(n) || !m.invited(n) || !isNew && !m.has(n) {
		return
	}
	m.config.IDs[n.Peer] = n.ID
	m.config.RunsOn[n.Process] = n.Peer
	m.newcomers = slices.DeleteFunc(m.newcomers, n.excludes)
	out.Came = append(out.Came, n)
}

// maxPeers bounds the peers that a job has in all: each that comes has a process that no
// other has had.
func (c Config) maxPeers() int { return c.Peers + min(MaxPeers, view.MaxReplicas*c.View.N) }
