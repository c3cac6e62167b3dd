package viewgroup

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// lies returns messages that would do harm if the receiver accepted them.
func lies(from, to int) []*raftpb.Message {
	all := []*raftpb.Message{
		{Type: raftpb.MsgHeartbeat.Enum(), Commit: new(uint64(1 << 40))},
		{Type: raftpb.MsgApp.Enum(), Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(2)), Entries: []*raftpb.Entry{
			{Index: new(uint64(2)), Term: new(uint64(99)), Data: signed(from, fails(1)).encode()},
		}},
		{Type: raftpb.MsgProp.Enum(), Entries: []*raftpb.Entry{{Data: signed(from, fails(1)).encode()}}},
	}
	for _, m := range all {
		m.From, m.To = new(uint64(from)+1), new(uint64(to)+1)
		if m.GetType() != raftpb.MsgProp {
			m.Term = new(uint64(99))
		}
	}
	return all
}

// TestRemovedMembersAreIgnored checks that a removed member can neither break the others nor add to
// their log.
func TestRemovedMembersAreIgnored(t *testing.T) {
	for i := range lies(0, 0) {
		w := newWorld(t, 20, 5)
		w.ticks(3)
		w.propose(0, 3, view.Failed)
		w.carry(0, w.members[0].Gone(4))
		w.until("all know that it has left", func() bool {
			return !slices.ContainsFunc(w.members[:4], func(m *Member) bool { return m.Votes(4) })
		})
		for to := range 4 {
			out, err := w.members[to].Step(4, wrap(lies(4, to)[i]))
			if err != nil {
				t.Errorf("an honest peer may not know that it has left: %v", err)
			}
			w.carry(to, out)
		}
		w.ticks(electionTicks)
		w.propose(2, 0, view.Failed)
		w.until("the others agree", w.failed(0, 0, 1, 2, 3))
		if w.members[2].View().Epoch != 3 {
			t.Errorf("lie %d: %v", i, w.members[2].View())
		}
	}
}

// TestHeartbeatForMissingEntriesIsRefused checks that a heartbeat for missing entries is refused without
// effect.
func TestHeartbeatForMissingEntriesIsRefused(t *testing.T) {
	w := newWorld(t, 21, 3)
	w.ticks(3)
	if _, err := w.members[1].Step(2, wrap(lies(2, 1)[0])); err == nil {
		t.Error("the heartbeat was accepted")
	}
	w.propose(1, 0, view.Failed)
	w.until("the member takes part", w.failed(0, 0, 1, 2))
}

// TestElectionsAreUnlimited checks that any number of elections is tolerated, although each adds an entry to
// the log. Changes that other peers propose are bounded.
func TestElectionsAreUnlimited(t *testing.T) {
	skip.Long(t)
	w := newWorld(t, 22, 3)
	w.ticks(3)
	m := w.members[0]
	for range logOfAll / (4 * entryCost) {
		m.node.Propose(nil) // as a new leader does
		w.tick()
	}
	w.propose(2, 0, view.Failed)
	w.until("failed", w.failed(0, 0, 1, 2))
	var all Output
	for range logOfAll / entryCost {
		out, err := m.Step(2, wrap(lies(2, 0)[2]))
		if err != nil {
			t.Fatal(err)
		}
		all.add(out)
	}
	w.carry(0, all) // no time has passed
	if m.logged > m.maxLog()*3/4 {
		t.Errorf("proposals of another peer fill %d of %d bytes of the log", m.logged, m.maxLog())
	}
	w.propose(0, 1, view.Finished)
	w.until("the leader goes on", func() bool { return m.View().Epoch == 3 })
}
