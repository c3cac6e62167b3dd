package viewgroup

import (
	"bufio"
	"context"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/recording"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// FuzzStream checks that the member receives only messages with the sender's number from a stream, and no more
// than the sender's share.
func FuzzStream(f *testing.F) {
	hello := &pb.Hello{Job: "job"}
	from := func(id uint64) *Message {
		return wrap(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(id), To: new(uint64(1)), Term: new(uint64(2))})
	}
	f.Add(recording.Of(f, hello, from(2), from(2)))
	f.Add(recording.Of(f, hello, from(2), from(3)))
	f.Add(recording.Of(f, &pb.Hello{Job: "another"}, from(2)))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f})
	over, cancel := context.WithCancel(context.Background())
	cancel() // no stream waits for a group
	f.Add(recording.Of(f, &pb.Hello{Job: "job", Number: 3, Signature: []byte("made up")}, from(4)))
	ids := []p2ppeer.ID{"a", "b", "c"}
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &Group{
			config: GroupConfig{Job: "job", Peers: ids, First: len(ids)},
			peers:  make(map[int]*peer), numbers: make(map[p2ppeer.ID]int), ctx: context.Background(),
			inbox: make(chan received, maxRate+1), inbound: make(map[int]network.Stream),
		}
		for number, id := range ids {
			g.add(number, id)
		}
		s := &Service{ctx: over, waiting: misconduct.NewQuota(1, 1), groups: map[string]*Group{"job": g}}
		st := recording.New("b", b)
		in := bufio.NewReaderSize(st, 4096)
		met, number, err := s.meet(st, in)
		if _, full := s.waiting.Take("b"); full != nil {
			t.Error("the stream still waits for its group")
		}
		if err != nil {
			return
		}
		if met != g || number != 1 {
			t.Fatalf("b is taken for peer %d", number)
		}
		if err := g.read(st, in, number); err == nil {
			t.Error("the stream has no end")
		}
		if len(g.inbox) > maxRate {
			t.Errorf("%d messages at once", len(g.inbox))
		}
		for range len(g.inbox) {
			if r := <-g.inbox; r.from != 1 || r.msg.GetFrom() != 1 {
				t.Errorf("b speaks for another: %v", r.msg)
			}
		}
	})
}

// FuzzNewcomer makes a malicious member write arbitrary newcomers into the log. Each either adds a peer for
// which the job has room, or ends the member's part in the group, but does not crash this process.
func FuzzNewcomer(f *testing.F) {
	good := Config{}.introduction(invite(Newcomer{Peer: 3, ID: idOf(3), Process: view.Process{Replica: 1}, Row: []byte("row")}))
	again := Config{}.introduction(invite(Newcomer{Peer: 1, ID: idOf(1), Process: view.Process{Replica: 1}, Row: []byte("row")}))
	f.Add(uint64(4), good.GetContext())
	f.Add(uint64(2), again.GetContext())
	f.Add(uint64(0), good.GetContext())
	f.Add(uint64(1<<63), good.GetContext())
	f.Add(uint64(4), []byte{0xff})
	f.Fuzz(func(t *testing.T, id uint64, context []byte) {
		m, err := New(Config{View: view.New(2, 1), Peers: 3, Members: 3, RunsOn: runsOn(3), IDs: idsOf(3), Verify: verify, Sign: signs(0)})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		c := &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(id), Context: context}
		m.attempt(func() error { m.admitNewcomer(&out, c); return nil })
		for _, n := range out.Came {
			if m.broken != nil || !m.config.hasRoom(n) || m.config.RunsOn[n.Process] != n.Peer {
				t.Errorf("%+v has come (%v)", n, m.broken)
			}
		}
	})
}
