package viewgroup

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// askForLog makes the submitter's peer ask the voters for the log while it hears no leader. The link to the
// leader may be down, or the leader lies and sends nothing to keep the submitter's peer out.
func (m *Member) askForLog(out *Output) {
	if m.now%heartbeatTicks != 0 || !m.missesLeader() {
		return
	}
	for _, id := range m.conf.GetVoters() {
		if id != submitter {
			msg := m.message(int(id) - 1)
			msg.After = m.node.BasicStatus().GetCommit()
			out.Send = append(out.Send, msg)
		}
	}
}

// missesLeader reports whether this is the submitter's peer and has not heard a leader for a while.
func (m *Member) missesLeader() bool {
	return m.config.Self == submitterPeer && !m.Leads() && m.now-m.ledAt > absentTicks
}

// relay sends the submitter's peer the entries of the leader after an index, up to the last one that the
// leader has signed.
func (m *Member) relay(out *Output, after uint64) {
	k := m.proofs
	if k.leads != k.term || k.leader == k.self || k.leader == submitterPeer || k.last == nil || m.Contact() != InTouch || after < 1 {
		return
	}
	last := k.last.GetIndex()
	if after > last {
		return
	}
	var entries []*raftpb.Entry
	if after < last {
		var err error
		if entries, err = k.store.Entries(after+1, last+1, math.MaxUint64); err != nil {
			return
		}
	}
	r := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: new(uint64(k.leader) + 1), To: new(uint64(submitter)), Term: new(k.term),
		Index: &after, LogTerm: new(k.termAt(after)), Entries: entries, Commit: new(min(k.commit, last)),
	}
	b, err := proto.Marshal(r)
	if err != nil || len(b) > maxRelayed {
		return
	}
	msg := m.message(submitterPeer)
	msg.Raft, msg.Starts, msg.Votes = b, k.starts, k.votes
	msg.Previous, _ = k.log.at(after)
	msg.Heads = append(k.followedHeads(), k.last)
	msg.Signers = k.newcomersIn(msg)
	out.Send = append(out.Send, msg)
}

// maxRelayed bounds the entries in one relayed message, in bytes.
const maxRelayed = maxMessage / 2

// receiveRelayed handles entries of the leader that another peer has relayed to the submitter's peer. It then
// takes the leadership if it can: it is the preferred leader, and the present one does not answer it.
func (m *Member) receiveRelayed(msg *Message, r *raftpb.Message) (Output, error) {
	k := m.proofs
	if !m.missesLeader() || r.GetTerm() < k.term {
		return m.ready(), nil
	}
	if before, ok := k.log.at(r.GetIndex()); !ok || !bytes.Equal(before, msg.GetPrevious()) {
		return m.ready(), nil // one of the two logs is that of an earlier leader that has lied
	}
	if !k.isSignedByLeader(msg, r) {
		return m.ready(), fmt.Errorf("%w: relayed entries that the leader has not signed", errUnjustified)
	}
	in := incoming{from: int(r.GetFrom()) - 1, raft: r, msg: msg, status: m.node.BasicStatus(), behind: true}
	ok, err := k.justified(in)
	if m.noteFound(); err != nil || !ok {
		return m.ready(), err
	}
	m.heard[uint64(msg.GetFrom())+1] = m.now
	claimed := r.GetCommit()
	r.Commit = new(min(claimed, k.committed(r.GetTerm())))
	m.attempt(func() error { return m.node.Step(r) })
	out := m.ready()
	m.commitFurther(&out, r, claimed)
	heard := m.majorityHeard()
	m.touched = max(m.touched, heard)
	if m.Votes(submitterPeer) && m.now-heard <= 2*heartbeatTicks {
		m.attempt(func() error {
			return m.node.Step(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: r.From, To: r.To, Term: new(k.term)})
		})
		out.add(m.ready())
	}
	return out, m.broken
}

// isSignedByLeader reports whether the leader has signed the log that results from the entries in r.
func (k *proofs) isSignedByLeader(msg *Message, r *raftpb.Message) bool {
	before := r.GetIndex() - 1 // length of the chain, which begins with the second entry
	hash, _ := k.log[:before:before].append(r.GetEntries()).at(r.GetIndex() + uint64(len(r.GetEntries())))
	return slices.ContainsFunc(msg.GetHeads(), func(s *Statement) bool {
		return s.GetKind() == pb.Statement_HEAD && uint64(s.GetBy())+1 == r.GetFrom() && s.GetTerm() == r.GetTerm() &&
			bytes.Equal(s.GetHash(), hash) && k.isSigned(s)
	})
}
