package viewgroup

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"reflect"
	"slices"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A world is the peers of a job and the messages in transit, in virtual time. It checks V1 at every step.
type world struct {
	*testing.T
	random  *mrand.Rand
	members []*Member // nil if crashed
	flying  []flight
	side    []int           // peers on different sides do not reach each other
	down    map[[2]int]bool // links that lose all messages, from one peer to another
	stopped map[int]bool    // peers whose process does not run; messages to it are lost
	loss    float64         // probability that a message is lost
	delay   int             // maximum delay in ticks
	now     int
	agreed  map[uint64]view.View                 // by epoch
	logs    map[uint64]string                    // hashes of the committed logs, by index
	views   []view.View                          // last view of each peer
	words   []Newcomer                           // of the newcomers
	own     map[int]Newcomer                     // introductions of the submitter's later processes, by number
	liar    int                                  // peer whose messages may be refused; 0 if none
	split   bool                                 // it has given other peers different views
	drops   func(to int, r *raftpb.Message) bool // reports whether the liar withholds r, which it may alter; nil: it does neither
	bars    bool                                 // the liar does not admit a new process of the submitter
	hides   bool                                 // the liar shows no other peer what it has signed

	alters    func(m *Message) // changes a message of the liar; nil: it does not
	limit     int              // longer messages, in bytes, are lost; 0: none is
	relayless bool             // messages that relay entries are lost
}

// A flight is a message that arrives at a given tick.
type flight struct {
	from, to, at int
	message      []byte
}

// newWorld returns a job of the given number of peers, including the submitter's. Each of the others runs
// one process.
func newWorld(t *testing.T, seed uint64, peers int) *world {
	t.Helper()
	var key [32]byte
	key[0], key[1], key[2] = byte(seed), byte(seed>>8), byte(seed>>16)
	old := rand.Reader
	rand.Reader = mrand.NewChaCha8(key) // for the library's election timeouts
	t.Cleanup(func() { rand.Reader = old })
	w := &world{
		T: t, random: mrand.New(mrand.NewPCG(seed, 1)), delay: 1,
		side: make([]int, peers), agreed: make(map[uint64]view.View), logs: make(map[uint64]string),
		own: make(map[int]Newcomer), down: make(map[[2]int]bool), stopped: make(map[int]bool),
	}
	for self := range peers {
		m, err := New(Config{View: view.New(peers-1, 1), Peers: peers, Members: Members(peers), Self: self, RunsOn: runsOn(peers), IDs: idsOf(peers), Verify: verify, Sign: signs(self)})
		if err != nil {
			t.Fatal(err)
		}
		w.members, w.views = append(w.members, m), append(w.views, m.View())
	}
	return w
}

// runsOn places rank i on peer i+1.
func runsOn(peers int) map[view.Process]int {
	at := make(map[view.Process]int)
	for i := range peers - 1 {
		at[view.Process{Rank: i}] = i + 1
	}
	return at
}

// idOf returns the ID of the peer with a number.
func idOf(number int) p2ppeer.ID { return p2ppeer.ID(fmt.Sprint("peer ", number)) }

func idsOf(peers int) map[int]p2ppeer.ID {
	ids := make(map[int]p2ppeer.ID)
	for i := range peers {
		ids[i] = idOf(i)
	}
	return ids
}

// verify checks the signatures of signed and invite.
func verify(by p2ppeer.ID, statement, signature []byte) bool {
	return string(signature) == string(by)+" says "+string(statement)
}

// signs returns the function with which a peer signs.
func signs(number int) Signer {
	return func(statement []byte) []byte {
		return fmt.Appendf(nil, "%s says %s", string(idOf(number)), statement)
	}
}

// wrap returns the message in which a peer sends r.
func wrap(r *raftpb.Message) *Message {
	b, err := proto.Marshal(r)
	if err != nil {
		panic(err)
	}
	return &Message{From: uint32(r.GetFrom() - 1), To: uint32(r.GetTo() - 1), Raft: b}
}

// signed returns a signed proposal of a peer.
func signed(author int, c view.Change) Proposal {
	p := Proposal{Change: c, Author: author}
	p.Signature = fmt.Appendf(nil, "%s says %s", string(idOf(author)), p.statement())
	return p
}

// invite signs n as the submitter does.
func invite(n Newcomer) Newcomer {
	n.Signature = fmt.Appendf(nil, "%s says %s", string(idOf(submitterPeer)), n.statement())
	return n
}

// comes adds a peer with another replica of a rank, introduces it at the submitter's peer, and returns its
// number.
func (w *world) comes(rank int) (number int) {
	w.Helper()
	_, p, ok := w.members[0].View().Join(rank)
	if !ok {
		w.Fatalf("no process can join rank %d: %s", rank, w.state())
	}
	return w.comesAs(p, 0)
}

// comesAs adds a peer with process p, and introduces it at the given members.
func (w *world) comesAs(p view.Process, told ...int) (number int) {
	w.Helper()
	number = len(w.members)
	c := w.members[told[0]].config
	m, err := New(Config{View: view.New(c.Peers-1, 1), Peers: c.Peers, Members: c.Members, Self: number, Submitter: w.submitter(), RunsOn: runsOn(c.Peers), IDs: idsOf(c.Peers), Told: w.ids(number), Verify: verify, Sign: signs(number)})
	if err != nil {
		w.Fatal(err)
	}
	w.members, w.views, w.side = append(w.members, m), append(w.views, m.View()), append(w.side, w.side[told[0]])
	w.words = append(w.words, invite(Newcomer{Peer: number, ID: idOf(number), Process: p}))
	for _, i := range told {
		w.tell(i, w.words[len(w.words)-1])
	}
	return number
}

// ids returns the IDs of all peers, by number, and of one more with the given number.
func (w *world) ids(more int) map[int]p2ppeer.ID {
	ids := idsOf(len(w.members))
	ids[more] = idOf(more)
	for number := range w.own {
		ids[number] = idOf(submitterPeer)
	}
	return ids
}

// isSubmitter reports whether a number is one of the submitter's peer.
func (w *world) isSubmitter(number int) bool {
	return number == submitterPeer || w.own[number].ID != ""
}

// submitter returns the last number of the submitter's peer.
func (w *world) submitter() (last int) {
	for number := range w.own {
		last = max(last, number)
	}
	return last
}

// resumes starts a new process of the submitter, whose former one has crashed or is stopped, and returns its number.
func (w *world) resumes(peers int) (number int) {
	w.Helper()
	number = len(w.members)
	n := invite(Newcomer{Peer: number, ID: idOf(submitterPeer), Process: NoProcess})
	told := w.ids(number)
	told[number] = n.ID
	m, err := New(Config{View: view.New(peers-1, 1), Peers: peers, Members: Members(peers), Self: number, Submitter: number, RunsOn: runsOn(peers), IDs: idsOf(peers), Told: told, Verify: verify, Sign: signs(submitterPeer)})
	if err != nil {
		w.Fatal(err)
	}
	w.members, w.views, w.side = append(w.members, m), append(w.views, m.View()), append(w.side, 0)
	w.own[number] = n
	return number
}

// tell tells a member of a newcomer.
func (w *world) tell(i int, n Newcomer) {
	w.Helper()
	w.carry(i, w.members[i].Introduce(n))
	w.carry(i, w.members[i].Propose(signed(submitterPeer, view.Change{Process: n.Process})))
}

// joiner returns the process that may join a rank next, unless there is a peer for it already.
func (w *world) joiner(rank int) (p view.Process, ok bool) {
	var v view.View
	for _, m := range w.members {
		if m != nil && v.Epoch == 0 {
			v = m.config.View
		}
	}
	for _, agreed := range w.agreed {
		if agreed.Epoch > v.Epoch {
			v = agreed
		}
	}
	_, p, ok = v.Join(rank)
	return p, ok && !slices.ContainsFunc(w.words, func(n Newcomer) bool { return n.Process == p })
}

// carry carries out the output of member i.
func (w *world) carry(i int, out Output) {
	w.Helper()
	for _, m := range out.Send {
		if last := w.members[i].proofs.submitter; w.isSubmitter(int(m.GetTo())) && int(m.GetTo()) < last {
			continue // see Group.writerTo
		}
		b, err := proto.Marshal(m)
		if err != nil {
			w.Fatal(err)
		}
		w.flying = append(w.flying, flight{i, int(m.GetTo()), w.now + w.random.IntN(w.delay+1), b})
	}
	for _, c := range out.Committed {
		v, changed := c.Change.Apply(w.views[i])
		if !changed || v.Epoch != c.Epoch {
			w.Fatalf("peer %d: epoch %d does not follow from %v by %v", i, c.Epoch, w.views[i], c.Change)
		}
		w.views[i] = v
		first, known := w.agreed[v.Epoch]
		if !known {
			w.agreed[v.Epoch] = v
		}
		if known && !w.split && !reflect.DeepEqual(first, v) {
			w.Fatalf("V1: epoch %d is %v at peer %d, and %v elsewhere", v.Epoch, v, i, first)
		}
	}
	if n := w.members[i].unsettled(); n > 1 && (w.liar == 0 || i != w.liar) {
		w.Fatalf("V1: peer %d does not know who votes after %d changes", i, n)
	}
	if w.members[i].hasUnsigned() && (w.liar == 0 || i != w.liar) {
		w.Fatalf("V4: peer %d has entries that it cannot relay", i)
	}
	index, log := w.members[i].committedLog()
	if first, known := w.logs[index]; known && first != log && !w.split {
		w.Fatalf("V1: the log up to entry %d, which is committed, differs at peer %d", index, i)
	}
	w.logs[index] = log
	if v := w.members[i].View(); !reflect.DeepEqual(v, w.views[i]) {
		w.Fatalf("peer %d has %v, which does not follow from what it is told", i, v)
	}
}

// unsettled returns the number of changes of the voters in the log that m does not know to be committed. Two majorities
// of sets that differ by one change overlap.
func (m *Member) unsettled() (n int) {
	last, _ := m.store.LastIndex()
	entries, _ := m.store.Entries(min(m.node.BasicStatus().Applied, last)+1, last+1, 1<<40)
	for _, e := range entries {
		if voterChangeIn(e) != nil {
			n++
		}
	}
	return n
}

// hasUnsigned reports whether m has entries of a leader that the leader has not signed.
func (m *Member) hasUnsigned() bool {
	k := m.proofs
	last, _ := m.store.LastIndex()
	return k.leads == k.term && k.leader != k.self && !k.isOfSubmitter(k.leader) && k.termAt(last) == k.term && k.attested < last
}

// committedLog returns the index of the last committed entry, and the hash of the log up to it.
func (m *Member) committedLog() (index uint64, hash string) {
	index = m.node.BasicStatus().GetCommit()
	h, _ := m.proofs.log.at(index)
	return index, string(h)
}

// tick lets one tick pass, and delivers the messages that arrive in it.
func (w *world) tick() {
	w.Helper()
	w.now++
	for i, m := range w.members {
		if m != nil && !w.stopped[i] {
			w.carry(i, m.Tick())
		}
	}
	for len(w.flying) > 0 {
		var later, due []flight
		for _, f := range w.flying {
			if f.at > w.now {
				later = append(later, f)
			} else {
				due = append(due, f)
			}
		}
		w.flying = later
		if len(due) == 0 {
			return
		}
		w.random.Shuffle(len(due), func(a, b int) { due[a], due[b] = due[b], due[a] })
		for _, f := range due {
			w.arrive(f)
		}
	}
}

func (w *world) arrive(f flight) {
	w.Helper()
	if w.members[f.to] == nil || w.stopped[f.to] || w.side[f.from] != w.side[f.to] || w.down[[2]int{f.from, f.to}] || w.random.Float64() < w.loss {
		return
	}
	var m Message
	if err := proto.Unmarshal(f.message, &m); err != nil {
		w.Fatal(err)
	}
	if w.drops != nil && f.from == w.liar {
		r := &raftpb.Message{}
		if err := proto.Unmarshal(m.GetRaft(), r); err != nil {
			w.Fatal(err)
		}
		if w.drops(f.to, r) {
			return
		}
		m.Raft = wrap(r).GetRaft()
	}
	if w.alters != nil && f.from == w.liar {
		w.alters(&m)
	}
	if w.relayless && relays(&m) || w.limit > 0 && proto.Size(&m) > w.limit {
		return
	}
	if w.hides && f.from == w.liar {
		m.Heads = slices.DeleteFunc(m.Heads, func(s *Statement) bool { return int(s.GetBy()) == w.liar })
	}
	if n, ok := w.own[f.from]; ok && !(w.bars && f.to == w.liar) { // each stream begins with it
		w.carry(f.to, w.members[f.to].Introduce(n))
	}
	out, err := w.members[f.to].Step(f.from, &m)
	if err != nil && (w.liar == 0 || f.from != w.liar && f.to != w.liar && w.members[f.to].broken == nil) {
		w.Fatalf("peer %d refuses %v: %v", f.to, &m, err)
	}
	w.carry(f.to, out)
}

// relays reports whether a message relays entries of another peer.
func relays(m *Message) bool {
	r := &raftpb.Message{}
	return proto.Unmarshal(m.GetRaft(), r) == nil && len(m.GetRaft()) > 0 && r.GetFrom() != uint64(m.GetFrom())+1
}

// ticks lets n ticks pass.
func (w *world) ticks(n int) {
	w.Helper()
	for range n {
		w.tick()
	}
}

// propose makes member i propose a change in the submitter's name, as for a submitter outside the group.
func (w *world) propose(i, rank int, to view.State) {
	w.Helper()
	w.carry(i, w.members[i].Propose(signed(submitterPeer, view.Change{Process: view.Process{Rank: rank}, To: to})))
}

// crash removes a peer permanently.
func (w *world) crash(i int) { w.members[i] = nil }

// until lets time pass until ok returns true.
func (w *world) until(what string, ok func() bool) int {
	w.Helper()
	for n := range 1000 {
		if ok() {
			return n
		}
		w.tick()
	}
	w.Fatalf("not within 1000 ticks: %s; %s", what, w.state())
	return 0
}

func (w *world) state() (s string) {
	for i, m := range w.members {
		if m != nil {
			s += fmt.Sprintf("peer %d: leads %v (term %d of %d), contact %v, wants %d, epoch %d, %v, last submitter %d; \n", i, m.Leads(), m.proofs.leads, m.term(), m.Contact(), len(m.wanted), m.view.Epoch, m.conf, m.proofs.submitter)
		}
	}
	return s
}

// failed reports whether all of these peers have a view in which the rank has failed.
func (w *world) failed(rank int, peers ...int) func() bool {
	return func() bool {
		for _, i := range peers {
			if w.members[i].View().State(view.Process{Rank: rank}) != view.Failed {
				return false
			}
		}
		return true
	}
}
