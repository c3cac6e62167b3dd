package viewgroup

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// TestV4ChangeOfVotersShowsThatThePreviousOneIsCommitted checks that a peer accepts a change of the voters only if the
// previous one is committed, and the change shows that. The peer would not know who votes otherwise.
func TestV4ChangeOfVotersShowsThatThePreviousOneIsCommitted(t *testing.T) {
	demotes := func(peer int) *raftpb.ConfChange {
		return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(peer) + 1)}
	}
	for name, c := range map[string]struct {
		change func(told *pb.VoterChange, by ...*Member)
		want   bool
	}{
		"by the HEADs of a majority": {func(*pb.VoterChange, ...*Member) {}, true},
		"by no statement":            {func(told *pb.VoterChange, _ ...*Member) { told.Settled = nil }, false},
		"by the HEADs of two of five": {func(told *pb.VoterChange, _ ...*Member) {
			told.Settled = told.GetSettled()[:2]
		}, false},
		"by the same HEAD again and again": {func(told *pb.VoterChange, _ ...*Member) {
			s := told.GetSettled()[0]
			told.Settled = []*Statement{s, s, s}
		}, false},
		"by many HEADs": {func(told *pb.VoterChange, _ ...*Member) {
			for len(told.GetSettled()) <= maxSigners {
				told.Settled = append(told.Settled, told.GetSettled()[0])
			}
		}, false},
		"by HEADs before it": {func(told *pb.VoterChange, by ...*Member) {
			before := by[0].proofs.changed.index - 1
			resign(told, by, func(s *Statement, m *Member) { s.Index = before; s.Hash, _ = m.proofs.log.at(before) })
		}, false},
		"by HEADs of another log": {func(told *pb.VoterChange, by ...*Member) {
			resign(told, by, func(s *Statement, _ *Member) { s.Hash = make([]byte, hashSize) })
		}, false},
		"by HEADs of a later term than the entry": {func(told *pb.VoterChange, by ...*Member) {
			resign(told, by, func(s *Statement, _ *Member) { s.Term++ })
		}, false},
		"by HEADs of two terms": {func(told *pb.VoterChange, _ ...*Member) {
			told.Settled = told.GetSettled()[:3]
			s := told.GetSettled()[0]
			s.Term--
			s.Signature = signs(int(s.GetBy()))(text(s))
		}, false},
		"by forged HEADs": {func(told *pb.VoterChange, _ ...*Member) {
			for _, s := range told.GetSettled() {
				s.Signature = []byte("made up")
			}
		}, false},
		"by the COMMIT of the leader": {func(told *pb.VoterChange, by ...*Member) {
			resign(told, by[:1], func(s *Statement, _ *Member) { s.Kind = pb.Statement_COMMIT })
			told.Settled = told.GetSettled()[:1]
		}, false},
		"by the COMMIT of the submitter's peer": {func(told *pb.VoterChange, by ...*Member) {
			s := proto.CloneOf(told.GetSettled()[0])
			s.Kind, s.By = pb.Statement_COMMIT, submitterPeer
			s.Signature = signs(submitterPeer)(text(s))
			told.Settled = []*Statement{s}
		}, true},
		"by the HEAD of the submitter's peer": {func(told *pb.VoterChange, by ...*Member) {
			s := proto.CloneOf(told.GetSettled()[0])
			s.By = submitterPeer
			s.Signature = signs(submitterPeer)(text(s))
			told.Settled = []*Statement{s}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := withLiar(t, 55, 6)
			led, m := w.members[liar], w.members[3]
			d := demotes(2)
			if !led.certify(d) {
				t.Fatal("the leader cannot show that the previous change is committed")
			}
			told := contextOf(d)
			c.change(told, led, w.members[2], m, w.members[4])
			d.Context, _ = proto.Marshal(told)
			before, _ := m.store.LastIndex()
			led.attempt(func() error { return led.node.ProposeConfChange(d) })
			w.carry(liar, led.ready())
			w.ticks(3)
			if after, _ := m.store.LastIndex(); (after > before) != c.want || m.broken != nil {
				t.Errorf("accepted: %v, want %v (%v)", after > before, c.want, m.broken)
			}
		})
	}
}

// resign changes the statements of these members in told.
func resign(told *pb.VoterChange, by []*Member, change func(s *Statement, m *Member)) {
	for _, s := range told.GetSettled() {
		for _, m := range by {
			if int(s.GetBy()) == m.config.Self {
				change(s, m)
				s.Signature = signs(m.config.Self)(text(s))
			}
		}
	}
}

// TestV4EntriesOfALeaderAreSigned checks that a peer accepts no entry that the leader has not signed: it could not
// relay the entry, or show that others have got another one.
func TestV4EntriesOfALeaderAreSigned(t *testing.T) {
	w := withLiar(t, 56, 6)
	w.hides = true
	m := w.members[2]
	before, _ := m.store.LastIndex()
	w.propose(liar, 1, 2)
	w.ticks(electionTicks)
	if after, _ := m.store.LastIndex(); after > before || m.broken != nil {
		t.Errorf("last entry %d after %d (%v)", after, before, m.broken)
	}
	w.hides = false
	w.until("signed entries are accepted", func() bool { return m.View().Epoch == 2 })
}

// TestV4PeerKeepsTheSignatureOfItsEntries checks that a peer can relay whatever it accepts: a leader that signs many
// entries at once, or together with a change of the voters that is refused, does not prevent that.
func TestV4PeerKeepsTheSignatureOfItsEntries(t *testing.T) {
	for name, c := range map[string]struct {
		empty, changes int // entries
		want           uint64
	}{
		"many entries":                           {2 * maxClaims, 0, 2 * maxClaims},
		"a change that begins the message":       {0, 1, 1},
		"a change that is not the first entry":   {1, 1, 0},
		"a change that is refused after another": {0, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := withLiar(t, 58, 6)
			led, m := w.members[liar], w.members[2]
			entries := make([]*raftpb.Entry, c.empty)
			for i := range entries {
				entries[i] = &raftpb.Entry{}
			}
			for i := range c.changes {
				d := &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(3))}
				if i == 0 && !led.certify(d) {
					t.Fatal("the leader cannot show that the previous change is committed")
				}
				entries = append(entries, changesMembers(t, d))
			}
			before, _ := m.store.LastIndex()
			msg := led.appends(2, entries...)
			led.signsEntries(m, msg)
			out, err := m.Step(liar, msg)
			if after, _ := m.store.LastIndex(); err != nil || after-before != c.want || m.hasUnsigned() {
				t.Errorf("%d entries are accepted, want %d; unsigned ones %v; %v", after-before, c.want, m.hasUnsigned(), err)
			}
			w.carry(2, out)
		})
	}
}

// TestV4EntriesAfterAGapAreRefused checks that a peer refuses entries that do not follow its log, which it cannot check.
func TestV4EntriesAfterAGapAreRefused(t *testing.T) {
	data, err := proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(4))})
	if err != nil {
		t.Fatal(err)
	}
	for _, gap := range []uint64{1, 1 << 40} {
		for _, ofTerm := range []uint64{0, 3} {
			w := withLiar(t, 57, 6)
			led, m := w.members[liar], w.members[2]
			before, _ := m.store.LastIndex()
			index, term := before+gap, ofTerm
			entry := &raftpb.Entry{Index: new(index + 1), Term: new(m.term()), Type: raftpb.EntryConfChange.Enum(), Data: data}
			msg := led.lies(2, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(m.term()), Index: &index, LogTerm: &term, Entries: []*raftpb.Entry{entry}})
			out, err := m.Step(liar, msg)
			if after, _ := m.store.LastIndex(); err != nil || after != before || m.broken != nil {
				t.Errorf("entry %d after an entry of term %d: %v, %v, last entry %d", index+1, term, err, m.broken, after)
			}
			w.carry(2, out)
		}
	}
}

// changesVoters makes the liar, which leads, append a change of the voters. It spares those that have crashed.
func (w *world) changesVoters(random *rand.Rand) {
	w.Helper()
	m := w.members[liar]
	kinds := []raftpb.ConfChangeType{raftpb.ConfChangeAddNode, raftpb.ConfChangeAddLearnerNode, raftpb.ConfChangeRemoveNode}
	c := &raftpb.ConfChange{Type: kinds[random.IntN(len(kinds))].Enum(), NodeId: new(uint64(2 + random.IntN(len(w.members)-1)))}
	if random.IntN(2) == 0 {
		m.certify(c)
	}
	m.attempt(func() error { return m.node.ProposeConfChange(c) })
	w.carry(liar, m.ready())
}

// changesAtOnce makes the library of the liar append changes of the membership without waiting for each other.
func (m *Member) changesAtOnce() {
	validates := reflect.ValueOf(m.node).Elem().FieldByName("raft").Elem().FieldByName("disableConfChangeValidation")
	reflect.NewAt(validates.Type(), validates.Addr().UnsafePointer()).Elem().SetBool(true)
}

// concealsVoters makes the liar, which leads, send the peers less than it should: nothing to a new process of the
// submitter, the number of which the result takes, and nothing at all to one of five voters. It may conceal what is
// committed and what it has signed, and withhold the entries from some peers.
func (w *world) concealsVoters(peers int, random *rand.Rand) (k *int) {
	m, skipped, withheld, number := w.members[liar], noPeer, make(map[int]bool), noPeer
	if random.IntN(4) > 0 {
		m.changesAtOnce()
	}
	if len(m.conf.GetVoters()) == maxMembers && random.IntN(2) == 0 {
		skipped = 2 + random.IntN(peers-2)
	}
	for i := range peers {
		withheld[i] = random.IntN(3) == 0
	}
	committed, conceals := m.node.BasicStatus().GetCommit(), random.IntN(2) == 0
	w.hides, w.bars = random.IntN(3) == 0, random.IntN(2) == 0
	w.drops = func(to int, r *raftpb.Message) bool {
		if isOfLeader(r) && conceals {
			r.Commit = new(min(r.GetCommit(), committed))
		}
		return to == number || to == skipped || withheld[to] && r.GetType() == raftpb.MsgApp
	}
	return &number
}

// TestV4ChangesOfVotersDoNotKeepTheSubmitterOut checks that a new process of the submitter comes to lead although a
// leader that lies appends changes of the voters and conceals them.
func TestV4ChangesOfVotersDoNotKeepTheSubmitterOut(t *testing.T) {
	for s := range uint64(*schedules) {
		runVoterChanges(t, max(*seed, 1)+s)
	}
}

func runVoterChanges(t *testing.T, seed uint64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("fails with -seed %d -schedules 1", seed)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 7))
	peers := 4 + random.IntN(5)
	w := withLiar(t, seed, peers)
	k := w.concealsVoters(peers, random)
	for range random.IntN(cutOffTicks) {
		if random.IntN(4) == 0 {
			w.changesVoters(random)
		}
		w.tick()
	}
	*k = w.resumes(peers)
	w.until("the new process leads", w.members[*k].Leads)
}
