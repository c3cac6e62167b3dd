package viewgroup

import (
	"runtime"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// heap returns the number of bytes in use on the heap.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// widest returns two members of a job with the maximum number of processes: the submitter, which alone
// votes, and a peer that receives its views.
func widest(t *testing.T) (submitter, told *Member) {
	t.Helper()
	c := Config{View: view.New(view.MaxProcesses, 1), Peers: 2, Members: 1, RunsOn: map[view.Process]int{{}: 1}, IDs: idsOf(2), Verify: verify, Sign: signs(0)}
	submitter, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Self, c.Sign = 1, signs(1)
	if told, err = New(c); err != nil {
		t.Fatal(err)
	}
	return submitter, told
}

// TestO4MemoryOfCommittedChangesIsBounded checks the memory for changes of the view in a job of the
// maximum size, whose view takes more than a megabyte.
func TestO4MemoryOfCommittedChangesIsBounded(t *testing.T) {
	const changes, most = 500, 8 << 20
	submitter, told := widest(t)
	var kept []Committed
	var carry func(from, to *Member, self int, out Output)
	carry = func(from, to *Member, self int, out Output) {
		if self == 1 {
			kept = append(kept, out.Committed...)
		}
		for _, msg := range out.Send {
			answer, err := to.Step(self, proto.CloneOf(msg))
			if err != nil {
				t.Fatal(err)
			}
			carry(to, from, 1-self, answer)
		}
	}
	tick := func() {
		carry(submitter, told, 0, submitter.Tick())
		carry(told, submitter, 1, told.Tick())
	}
	for range 20 {
		tick()
	}
	before := heap()
	for i := range changes {
		carry(submitter, told, 0, submitter.Propose(signed(submitterPeer, view.Change{Process: view.Process{Rank: i + 1}, To: view.Finished})))
	}
	for range 10 {
		tick()
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d changes take %d bytes, want at most %d", len(kept), grown, most)
	}
	if last := kept[len(kept)-1]; len(kept) != changes || last.Epoch != 1+changes || told.View().Epoch != last.Epoch {
		t.Errorf("%d changes, the last of %+v, and view %d", len(kept), last, told.View().Epoch)
	}
	runtime.KeepAlive(submitter)
}

// TestO4LogOfALiarIsBounded checks that a malicious member's log is bounded, whatever it contains,
// committed or not. A member that receives more leaves the group and does not affect anything else.
func TestO4LogOfALiarIsBounded(t *testing.T) {
	skip.Long(t)
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, 1<<10))
	cases := map[string]struct {
		entry   func() *raftpb.Entry
		first   func(m *Member, last uint64, log chain) *raftpb.Entry // of each message of m; nil: as the others
		commits bool
	}{
		"nothing":            {func() *raftpb.Entry { return &raftpb.Entry{} }, nil, true},
		"nothing, for later": {func() *raftpb.Entry { return &raftpb.Entry{} }, nil, false},
		"changes without effect": {func() *raftpb.Entry {
			return &raftpb.Entry{Data: signed(submitterPeer, view.Change{To: view.Live}).encode()}
		}, nil, true},
		"members": {func() *raftpb.Entry {
			return changesMembers(t, &raftpb.ConfChange{Type: raftpb.ConfChangeUpdateNode.Enum(), NodeId: new(uint64(2))})
		}, func(m *Member, last uint64, log chain) *raftpb.Entry {
			hash, _ := log.at(last)
			s := m.proofs.sign(&Statement{Kind: pb.Statement_COMMIT, Term: 2, Index: last, Hash: hash})
			context, err := proto.Marshal(&pb.VoterChange{Settled: []*Statement{s}})
			if err != nil {
				t.Fatal(err)
			}
			return changesMembers(t, &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(2)), Context: context})
		}, true},
		"long": {func() *raftpb.Entry { return &raftpb.Entry{Data: make([]byte, 1<<10)} }, nil, true},
		"of another kind": {func() *raftpb.Entry {
			e := &raftpb.Entry{}
			e.ProtoReflect().SetUnknown(unknown)
			return e
		}, nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			const each = 200
			submitter, told := widest(t)
			begins := submitter.proofs.sign(submitter.proofs.ballot(pb.Statement_START, 2))
			var log chain
			before, most := heap(), told.maxLog()
			for last := uint64(1); told.broken == nil; last += each {
				if last > 2*uint64(most)/entryCost {
					t.Fatalf("%d entries, and no end of them", last)
				}
				msg := &raftpb.Message{
					Type: raftpb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(2)),
					Index: new(last), LogTerm: new(min(last, 2)), Commit: new(uint64(1)),
				}
				for i := range uint64(each) {
					e := c.entry()
					if i == 0 && c.first != nil {
						e = c.first(submitter, last, log)
					}
					e.Index, e.Term = new(last+i+1), new(uint64(2))
					msg.Entries = append(msg.Entries, e)
				}
				if c.commits {
					msg.Commit = new(last + each)
				}
				lie := wrap(msg)
				lie.Starts = []*Statement{begins}
				lie.Previous, _ = log.at(last)
				log = log.append(msg.Entries)
				if _, err := told.Step(0, lie); err != nil && told.broken == nil {
					t.Fatal(err)
				}
			}
			if grown := heap() - before; grown > most {
				t.Errorf("a log of at most %d bytes takes %d", most, grown)
			}
			if told.Contact() != CutOff {
				t.Error("the member still takes part")
			}
			runtime.KeepAlive(told)
		})
	}
}

// changesMembers returns the entry of a change of the membership.
func changesMembers(t *testing.T, c *raftpb.ConfChange) *raftpb.Entry {
	t.Helper()
	data, err := proto.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: data}
}
