package viewgroup

import (
	"bytes"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// FuzzStep checks that no message of another peer crashes this one, whatever it changes in the membership
// (O4).
func FuzzStep(f *testing.F) {
	heads := []*raftpb.Message{
		{Type: raftpb.MsgHeartbeat.Enum(), Commit: new(uint64(1 << 40))},
		{Type: raftpb.MsgApp.Enum(), Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(2)), Entries: []*raftpb.Entry{
			{Index: new(uint64(2)), Term: new(uint64(2)), Type: raftpb.EntryConfChange.Enum(), Data: []byte("?")},
		}},
		{Type: raftpb.MsgApp.Enum(), Commit: new(uint64(9)), Entries: []*raftpb.Entry{{Index: new(uint64(7)), Term: new(uint64(9))}}},
		{Type: raftpb.MsgAppResp.Enum(), Index: new(uint64(99)), Reject: new(true)},
		{Type: raftpb.MsgProp.Enum()},
		{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{}},
		{Type: raftpb.MsgVote.Enum(), Index: new(uint64(1 << 60)), LogTerm: new(uint64(1 << 60))},
	}
	for _, m := range heads {
		m.From, m.To, m.Term = new(uint64(2)), new(uint64(1)), new(uint64(2))
		b, err := proto.Marshal(wrap(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	relayed := &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(uint64(9)), Index: new(uint64(1)), LogTerm: new(uint64(1))}
	b, err := proto.Marshal(wrap(relayed))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var msg Message
		if proto.Unmarshal(b, &msg) != nil {
			return
		}
		m, err := New(Config{View: view.New(2, 1), Peers: 3, Members: 3, RunsOn: runsOn(3), IDs: idsOf(3), Verify: verify, Sign: signs(0)})
		if err != nil {
			t.Fatal(err)
		}
		m.Tick()
		_, _ = m.Step(1, &msg)
		_, _ = m.Step(1, &msg)
		for range 2 * electionTicks {
			m.Tick()
		}
		_, _ = m.Step(1, &msg) // it misses the leader
		m.Propose(signed(submitterPeer, view.Change{To: view.Failed}))
	})
}

// FuzzProposal checks that a decoded proposal is unchanged after encoding and decoding, and that it has an
// effect only if its author has signed it.
func FuzzProposal(f *testing.F) {
	f.Add(signed(1, view.Change{To: view.Failed}).encode())
	f.Add(signed(submitterPeer, view.Change{Process: view.Process{Replica: 1}}).encode())
	f.Add(Proposal{Change: view.Change{To: view.Failed}, Author: 1 << 31}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProposal(b)
		if err != nil {
			return
		}
		again, err := decodeProposal(p.encode())
		if err != nil || again.Change != p.Change || again.Author != p.Author || !bytes.Equal(again.Signature, p.Signature) {
			t.Fatalf("%+v is read again as %+v: %v", p, again, err)
		}
		m, err := New(Config{View: view.New(2, 1), Peers: 3, Members: 3, RunsOn: runsOn(3), IDs: idsOf(3), Verify: verify, Sign: signs(0)})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		m.accept(&out, p)
		if len(out.Committed) > 0 && string(p.Signature) != string(signed(p.Author, p.Change).Signature) {
			t.Errorf("%+v has an effect", p)
		}
	})
}
