package viewgroup

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A proposedChange is a change that a member proposes at some time, in the name of author.
type proposedChange struct {
	member int
	change view.Change
	author int
}

// A scenario is a small group with possible faults.
type scenario struct {
	name      string
	peers     int
	proposals []proposedChange
	allowed
	before []event // events that have happened already
	told   []int   // members told of a newcomer with a replica of rank 0, each as often as listed; empty if none comes
}

// allowed counts the events that may still happen.
type allowed struct {
	waits   int // a member hears nothing for as long as an election takes
	crashes int
	resumes int // the submitter has a new process, after its former one has crashed
	cuts    int // a member loses contact to all others; messages in transit are lost
	heals   int
	lies    []string // that member liar tells, each once to one member; "" if told
}

// An event is one step of the whole group.
type event struct {
	kind     eventKind
	from, to int
	lie      int // number of the lie
}

type eventKind uint8

const (
	proposes eventKind = iota // from is the number of the proposal
	arrives                   // the first message in transit
	waits                     // electionTicks pass at from, which also chooses its timeout
	crashes
	cut
	heals
	quietens   // all messages in transit arrive
	introduces // from is the newcomer's number, to is the member that is told
	tells      // tells from that to is lost
	deceives   // the liar tells a lie
	resumes    // the submitter's new process starts
	leaves     // it goes when it may
)

func (e event) String() string {
	names := []string{"proposal", "arrives", "waits", "crashes", "is cut off", "heals", "quietens", "introduces", "tells", "lies", "resumes", "leaves"}
	return fmt.Sprintf("%s %d>%d", names[e.kind], e.from, e.to)
}

// A whole is the members of a job, and the messages between them, in order for each pair. It checks V1 and
// V2 at every step.
type whole struct {
	left      allowed
	proposals []proposedChange // not proposed yet; member is noPeer if proposed
	members   []*Member
	crashed   []bool
	alone     int        // the member that is cut off, or -1
	queues    [][]string // by from*peers+to: encoded messages
	agreed    map[uint64]view.View
	logs      map[uint64]string      // hashes of the committed logs, by index
	views     []view.View            // by member
	frozen    uint64                 // epoch of the member that is cut off, at that time
	first     int                    // number of first peers
	unmet     []bool                 // by member: it was not introduced yet
	words     []int                  // members to be told of the newcomer
	knows     []bool                 // by member: it was told of the newcomer
	come      []bool                 // by member: it has admitted the newcomer
	lies      bool                   // member liar lies
	had       []map[uint64]view.View // views of each member, by epoch, if one lies
	resumed   int                    // number of the submitter's new process, or noPeer
	calm      bool                   // no member has crashed, been cut off or missed the leader
	decided   []view.Change          // proposed by the submitter's new process
	broken    error                  // violation of a promise
}

const noPeer = -1

// liar is the member that lies, in a scenario with lies.
const liar = 1

// newWhole returns a group in which the submitter's peer leads and no message is in transit.
func newWhole(sc scenario) *whole {
	all := sc.peers + min(len(sc.told), 1) + sc.resumes
	g := &whole{
		left: sc.allowed, proposals: slices.Clone(sc.proposals), alone: noPeer, crashed: make([]bool, all), views: make([]view.View, all),
		queues: make([][]string, all*all), agreed: make(map[uint64]view.View), logs: make(map[uint64]string), first: sc.peers, unmet: make([]bool, all),
		words: slices.Clone(sc.told), knows: make([]bool, all), come: make([]bool, all), lies: len(sc.lies) > 0,
		had: make([]map[uint64]view.View, all), resumed: noPeer,
	}
	told := idsOf(all)
	if sc.resumes > 0 {
		g.resumed = all - 1
		told[g.resumed] = idOf(submitterPeer)
	}
	g.left.lies = slices.Clone(sc.lies)
	for self := range all {
		g.unmet[self], g.had[self] = self >= sc.peers, make(map[uint64]view.View)
		c := Config{View: view.New(sc.peers-1, 1), Peers: sc.peers, Members: Members(sc.peers), Self: self, RunsOn: runsOn(sc.peers), IDs: idsOf(sc.peers), Told: told, Verify: verify, Sign: signs(self)}
		if self == g.resumed {
			c.Submitter, c.Sign = self, signs(submitterPeer)
		}
		m, err := New(c)
		if err != nil {
			panic(err)
		}
		g.members, g.views[self] = append(g.members, m), m.View()
		g.carry(self, m.ready())
	}
	g.quieten()
	g.calm = true
	for _, e := range sc.before {
		g.apply(e)
	}
	return g
}

// enough is more messages than ever follow from one event.
const enough = 10_000

// quieten delivers all messages in transit.
func (g *whole) quieten() {
	arrived := 0
	for again := true; again && g.broken == nil; {
		again = false
		for i, q := range g.queues {
			if len(q) > 0 {
				g.arrive(i/len(g.members), i%len(g.members))
				again = true
				arrived++
			}
		}
		if arrived > enough {
			g.fail("no rest after %d messages", arrived)
		}
	}
}

// reaches reports whether a message between two members is delivered.
func (g *whole) reaches(from, to int) bool {
	return !g.crashed[from] && !g.crashed[to] && from != g.alone && to != g.alone
}

// carry carries out the output of member i and checks V1. Each view must follow from the member's previous
// one by the reported change, and equal all others of its epoch.
func (g *whole) carry(i int, out Output) {
	for _, m := range out.Send {
		to := int(m.GetTo())
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			panic(err)
		}
		// A repeated message is queued once: heartbeats.
		if q := &g.queues[i*len(g.members)+to]; g.reaches(i, to) && (len(*q) == 0 || (*q)[len(*q)-1] != string(b)) {
			*q = append(*q, string(b))
		}
	}
	for _, n := range out.Came {
		if n.Peer == g.resumed {
			continue
		}
		if g.come[i] || n.Peer != g.first {
			g.fail("peer %d has peer %d come, which is there already", i, n.Peer)
		}
		g.come[i] = true
	}
	for _, c := range out.Committed {
		if c.Change.To == view.Live && c.Change.Since == 0 && g.members[i].config.RunsOn[c.Change.Process] < g.first {
			g.fail("peer %d does not know where %v is, which is in the view", i, c.Change.Process)
		}
		v, changed := c.Change.Apply(g.views[i])
		if !changed || v.Epoch != c.Epoch {
			g.fail("peer %d: epoch %d does not follow from %v by %v", i, c.Epoch, g.views[i], c.Change)
		}
		g.views[i] = v
		if g.lies {
			g.had[i][v.Epoch] = v
			continue
		}
		first, known := g.agreed[v.Epoch]
		if !known {
			g.agreed[v.Epoch] = v
		} else if !reflect.DeepEqual(first, v) {
			g.fail("V1: epoch %d is %v at peer %d, and %v elsewhere", v.Epoch, v, i, first)
		}
	}
	if m := g.members[i]; !(g.lies && i == liar) && (m.unsettled() > 1 || m.hasUnsigned()) {
		g.fail("peer %d has accepted what the leader has not shown: %d changes of the voters, unsigned entries %v", i, m.unsettled(), m.hasUnsigned())
	}
	index, log := g.members[i].committedLog()
	if first, known := g.logs[index]; known && first != log && !g.lies {
		g.fail("V1: the log up to entry %d, which is committed, differs at peer %d", index, i)
	}
	g.logs[index] = log
	if v := g.members[i].View(); !reflect.DeepEqual(v, g.views[i]) {
		g.fail("peer %d has %v, which does not follow from what it is told", i, v)
	}
	if i == g.alone && g.members[i].View().Epoch > g.frozen {
		g.fail("V2: peer %d alone goes on to epoch %d", i, g.members[i].View().Epoch)
	}
}

func (g *whole) fail(format string, args ...any) {
	if g.broken == nil {
		g.broken = fmt.Errorf(format, args...)
	}
}

// events lists the possible next events.
func (g *whole) events() (evs []event) {
	for i, w := range g.proposals {
		if w.member != noPeer && !g.crashed[w.member] && !(w.member == g.resumed && g.unmet[w.member]) && (w.change != joins() || g.knows[w.member]) {
			evs = append(evs, event{kind: proposes, from: i})
		}
	}
	for k, to := range g.words {
		if !g.crashed[to] && !slices.Contains(g.words[:k], to) {
			evs = append(evs, event{kind: introduces, from: g.first, to: to})
		}
	}
	for i, q := range g.queues {
		if len(q) > 0 {
			evs = append(evs, event{kind: arrives, from: i / len(g.members), to: i % len(g.members)})
		}
	}
	for k, name := range g.left.lies {
		for to := range g.members {
			if name != "" && to != liar && !g.crashed[to] {
				evs = append(evs, event{kind: deceives, from: liar, to: to, lie: k})
			}
		}
	}
	if g.left.resumes > 0 && g.crashed[submitterPeer] {
		evs = append(evs, event{kind: resumes, from: g.resumed})
	}
	for i := range g.members {
		if g.crashed[i] || g.unmet[i] {
			continue
		}
		if g.left.waits > 0 {
			evs = append(evs, event{kind: waits, from: i})
		}
		if g.left.crashes > 0 && g.alone == noPeer {
			evs = append(evs, event{kind: crashes, from: i})
		}
		if g.left.cuts > 0 && !slices.Contains(g.crashed, true) {
			evs = append(evs, event{kind: cut, from: i})
		}
	}
	if g.alone != noPeer && g.left.heals > 0 {
		evs = append(evs, event{kind: heals})
	}
	return evs
}

func (g *whole) apply(e event) {
	g.calm = g.calm && e.kind != waits && e.kind != crashes && e.kind != cut
	defer func() {
		g.removeLeft()
		if g.calm && !g.members[submitterPeer].Leads() {
			g.fail("V4: the submitter's peer, which all hear, does not lead any more")
		}
	}()
	switch m := g.members[e.from]; e.kind {
	case proposes:
		w := g.proposals[e.from]
		g.proposals[e.from].member = noPeer
		if w.author == g.resumed && w.change != joins() {
			g.decided = append(g.decided, w.change)
		}
		g.carry(w.member, g.members[w.member].Propose(g.signed(w.author, w.change)))
	case arrives:
		g.arrive(e.from, e.to)
	case waits:
		g.left.waits--
		for range electionTicks {
			g.carry(e.from, m.Tick())
		}
	case crashes:
		g.left.crashes--
		g.crashed[e.from] = true
		g.lose(e.from)
	case cut:
		g.left.cuts--
		g.alone, g.frozen = e.from, m.View().Epoch
		g.lose(e.from)
	case heals:
		g.left.heals--
		g.alone = noPeer
	case quietens:
		g.quieten()
	case introduces:
		k := slices.Index(g.words, e.to)
		g.words = slices.Delete(g.words, k, k+1)
		g.unmet[e.from], g.knows[e.to] = false, true
		g.carry(e.to, g.members[e.to].Introduce(invite(Newcomer{Peer: e.from, ID: idOf(e.from), Process: joins().Process})))
	case tells:
		g.carry(e.from, m.Gone(e.to))
	case leaves:
		g.carry(e.from, m.Leave())
	case resumes:
		g.left.resumes--
		g.unmet[e.from] = false
	case deceives:
		g.tellLie(e.from, e.to, e.lie)
	}
}

// signed returns a signed proposal of a peer.
func (g *whole) signed(author int, c view.Change) Proposal {
	if author != g.resumed {
		return signed(author, c)
	}
	p := Proposal{Change: c, Author: author}
	p.Signature = signs(submitterPeer)(p.statement())
	return p
}

// leaver reports whether a member leaves.
func (g *whole) leaver() bool {
	return slices.ContainsFunc(g.members, func(m *Member) bool { return m.departures.since > 0 && !g.crashed[m.config.Self] })
}

// removeLeft removes the members that leave and may go.
func (g *whole) removeLeft() {
	for i, m := range g.members {
		if !g.crashed[i] && m.Left() {
			g.crashed[i] = true
			g.lose(i)
		}
	}
}

// lose drops all messages in transit from and to a member.
func (g *whole) lose(i int) {
	for k := range g.members {
		g.queues[i*len(g.members)+k], g.queues[k*len(g.members)+i] = nil, nil
	}
}

func (g *whole) arrive(from, to int) {
	q := &g.queues[from*len(g.members)+to]
	var m Message
	if err := proto.Unmarshal([]byte((*q)[0]), &m); err != nil {
		panic(err)
	}
	*q = (*q)[1:]
	if from == g.resumed { // each stream begins with the introduction
		g.carry(to, g.members[to].Introduce(invite(Newcomer{Peer: from, ID: idOf(submitterPeer), Process: NoProcess})))
	}
	out, err := g.members[to].Step(from, &m)
	if err != nil && (!g.lies || from != liar && to != liar && g.members[to].broken == nil) {
		g.fail("peer %d refuses %v of peer %d: %v", to, &m, from, err)
	}
	g.carry(to, out)
}

// settle checks the final state when nothing more happens. All members that reach a majority get their
// changes committed, including those of the membership, and have one view. A member that is cut off reports
// it.
func (g *whole) settle() {
	if !slices.Contains(g.unmet, true) { // the submitter has told one member, so it tells all that are left
		for _, to := range slices.Clone(g.words) {
			if !g.crashed[to] {
				g.apply(event{kind: introduces, from: g.first, to: to})
			}
		}
	}
	rest := cutOffTicks + 5*electionTicks // time to replace the submitter's peer and to elect another leader
	if g.leaver() {
		rest += graceTicks + 2*electionTicks
	}
	for range rest {
		for i, m := range g.members {
			if !g.crashed[i] && !(i == g.resumed && g.unmet[i]) {
				g.carry(i, m.Tick())
				g.quieten() // one after the other: equal timeouts would split the vote forever
				g.removeLeft()
			}
		}
	}
	if g.lies {
		g.checkHonest()
		if slices.ContainsFunc(g.members, func(m *Member) bool { return m.broken != nil && m.config.Self != liar }) {
			return
		}
	}
	leads := slices.IndexFunc(g.members, func(m *Member) bool { return m.Leads() && !g.crashed[m.config.Self] && m.config.Self != g.alone })
	if leads < 0 {
		g.fail("no member leads")
		return
	}
	leader := g.members[leads]
	if g.lies && leads == liar {
		return // it may withhold anything
	}
	g.checkResumed(leader)
	if g.leaver() {
		g.fail("a member that leaves is still there")
	}
	if leader.wantedMembership() != nil {
		g.fail("peer %d, which leads, does not get the membership into order: %v", leads, leader.conf)
	}
	taken := slices.Concat(leader.conf.GetVoters(), leader.conf.GetLearners())
	latest := leader.View().Epoch
	for i, m := range g.members {
		switch {
		case g.crashed[i], i == g.resumed && g.unmet[i]:
		case i == g.alone:
			if m.Contact() != CutOff {
				g.fail("V2: peer %d alone goes on", i)
			}
		case !slices.Contains(taken, uint64(i)+1) && i >= g.first: // the submitter's peer was lost first
		case len(m.wanted) > 0 || m.View().Epoch != latest || m.Contact() != InTouch:
			g.fail("peer %d still wants %v, in epoch %d of %d, contact %v", i, m.wanted, m.View().Epoch, latest, m.Contact())
		}
	}
}

// checkResumed checks the final state of a new process of the submitter. It leads, its changes took effect, and the
// group has forgotten the former process.
func (g *whole) checkResumed(leader *Member) {
	if g.resumed == noPeer || g.unmet[g.resumed] || g.crashed[g.resumed] {
		return
	}
	taken := slices.Concat(leader.conf.GetVoters(), leader.conf.GetLearners())
	if leader.config.Self != g.resumed || slices.Contains(taken, submitterPeer+1) {
		g.fail("the submitter's new process does not lead in place of the former one: %v", leader.conf)
	}
	for _, c := range g.decided {
		if _, changes := c.Apply(leader.View()); changes {
			g.fail("%v, which the submitter's new process has proposed, has no effect", c)
		}
	}
}

// hash returns a hash of the group's state: of each member everything that its next steps depend on, and
// all messages in transit.
func (g *whole) hash() uint64 {
	h := fnv.New64a()
	number := func(ns ...uint64) {
		for _, n := range ns {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], n)
			h.Write(b[:])
		}
	}
	fmt.Fprint(h, g.left, g.proposals, g.crashed, g.unmet, g.words, g.knows, g.alone, g.frozen)
	for _, q := range g.queues {
		number(uint64(len(q)))
		for _, b := range q {
			number(uint64(len(b)))
			h.Write([]byte(b))
		}
	}
	for i, m := range g.members {
		if !g.crashed[i] {
			fmt.Fprint(h, m.state())
		}
	}
	return h.Sum64()
}

// state describes everything that the next steps of m depend on. It reads the hidden part of the library's
// state from the library's fields.
func (m *Member) state() string {
	s := m.node.Status()
	r := reflect.ValueOf(m.node).Elem().FieldByName("raft").Elem()
	hidden := ""
	for _, name := range []string{"electionElapsed", "heartbeatElapsed", "randomizedElectionTimeout", "pendingConfIndex", "isLearner"} {
		hidden += fmt.Sprint(r.FieldByName(name), " ")
	}
	votes := make(map[uint64]bool)
	for it := r.FieldByName("trk").FieldByName("Votes").MapRange(); it.Next(); {
		votes[it.Key().Uint()] = it.Value().Bool()
	}
	first, _ := m.store.FirstIndex()
	last, _ := m.store.LastIndex()
	entries, _ := m.store.Entries(first, last+1, 1<<30)
	var log []string
	for _, e := range entries {
		log = append(log, fmt.Sprintf("%d %d %v %q", e.GetIndex(), e.GetTerm(), e.GetType(), e.GetData()))
	}
	var progress []string
	for _, id := range slices.Sorted(maps.Keys(s.Progress)) {
		p := s.Progress[id]
		progress = append(progress, fmt.Sprint(id, p.Match, p.Next, p.State, p.PendingSnapshot, p.RecentActive, p.MsgAppFlowPaused, p.IsLearner, p.Inflights.Count()))
	}
	var coming []int
	for _, n := range m.newcomers {
		coming = append(coming, n.Peer)
	}
	return fmt.Sprint(s.GetTerm(), s.GetVote(), s.GetCommit(), s.RaftState, s.Lead, s.Applied, s.LeadTransferee, hidden, votes, log, progress,
		m.conf.GetVoters(), m.conf.GetLearners(), m.view.Epoch, m.wanted, m.held, m.gone, coming, m.config.RunsOn, m.departures, m.changedAt, m.now, m.touched, m.heard, m.leader, m.proposed, m.answered, m.followed, m.claimedAt, m.settledAt, m.ledAt, m.tended, m.broken, m.proofs.state())
}

// state describes everything in k that the next steps depend on. Maps print in the order of their keys.
func (k *proofs) state() string {
	texts := func(all []*Statement) (texts []string) {
		for _, s := range all {
			texts = append(texts, string(text(s)))
		}
		return texts
	}
	var heads []string
	for _, by := range slices.Sorted(maps.Keys(k.heads)) {
		heads = append(heads, string(text(k.heads[by])))
	}
	return fmt.Sprint(k.terms, k.follows, texts(k.starts), texts(k.granted.of), texts(k.elected.of), k.leader, k.leads, k.matched, k.attested, slices.Sorted(maps.Keys(k.claims)), heads, k.knows, slices.Sorted(maps.Keys(k.newcomers)))
}
