package submit

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// A viewGroup is the submitter's side of the job's view group.
type viewGroup struct {
	j      *run
	peers  *membership
	group  *viewgroup.Group // nil: the submitter alone makes the views
	events *agreed

	numbers []int // numbers of the submitter's later processes, this process's last; the first one has 0
	behind  bool  // this process has resumed the job and has not been in touch yet
}

// An agreed queues the view group's events until the job handles them. The queue is short: each
// process changes only a few times.
type agreed struct {
	news chan struct{} // holds a token when there may be an event

	mu      sync.Mutex
	changes []viewgroup.Committed
	contact viewgroup.Contact // contact with the majority of the view group
	turned  bool              // contact has changed
}

func newAgreed() *agreed { return &agreed{news: make(chan struct{}, 1)} }

func (a *agreed) committed(cs []viewgroup.Committed, _ view.View) {
	a.mu.Lock()
	a.changes = append(a.changes, cs...)
	a.mu.Unlock()
	signal(a.news)
}

func (a *agreed) contacted(c viewgroup.Contact) {
	a.mu.Lock()
	a.contact, a.turned = c, true
	a.mu.Unlock()
	signal(a.news)
}

func (a *agreed) take() (changes []viewgroup.Committed, contact viewgroup.Contact, turned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changes, turned = a.changes, a.turned
	a.changes, a.turned = nil, false
	return changes, a.contact, turned
}

// hasGroup reports whether a job with r replicas per rank and the given number of members of the
// detector group has a view group. A job without replicas needs no group, since its submitter ends it after any
// failure. Two members need none, since neither is a majority.
func hasGroup(r, members int) bool { return r > 1 && viewgroup.Members(members) >= 3 }

// number numbers the peers of a job that starts, for its view group, if it is to have one.
func (g *viewGroup) number(members []p2ppeer.ID) {
	if !hasGroup(g.j.req.R, len(members)) {
		return
	}
	for i, member := range g.voters(members) {
		if l := g.peers.linkTo(members[member]); l != nil {
			l.number = i
		}
	}
}

// join starts the view group of these members of the detector group, which number has numbered. It
// returns the indices of all of them, in the order in which they are preferred as voters. It returns
// none if there is no group.
func (g *viewGroup) join(members []p2ppeer.ID, v view.View) ([]uint32, error) {
	if !hasGroup(g.j.req.R, len(members)) {
		return nil, nil
	}
	order := g.voters(members)
	c := viewgroup.GroupConfig{
		Job: g.j.spec.ID, First: len(order), Members: viewgroup.Members(len(order)),
		View: v, RunsOn: make(map[view.Process]int),
		Committed: g.events.committed, Contact: g.events.contacted,
		Came: func(viewgroup.Newcomer) {}, // only this peer introduces newcomers
	}
	for i, member := range order {
		c.Peers = append(c.Peers, members[member])
		if l := g.peers.linkTo(members[member]); l != nil {
			for _, p := range l.processes {
				c.RunsOn[p] = i
			}
		}
	}
	var err error
	if g.group, err = g.j.s.cfg.Views.Join(c); err != nil {
		return nil, fmt.Errorf("join the view group: %w", err)
	}
	return order, nil
}

// voters orders the members of the detector group by preference as voters: the submitter's peer,
// then one peer per machine, then the rest. Peers on one machine are lost together.
func (g *viewGroup) voters(members []p2ppeer.ID) []uint32 {
	self := slices.Index(members, g.j.s.cfg.Host.ID())
	order, others := []uint32{uint32(self)}, []uint32(nil)
	met := make(map[string]bool)
	if l := g.peers.linkTo(members[self]); l != nil {
		met[l.reported.machine] = true
	}
	for i, id := range members {
		l := g.peers.linkTo(id)
		switch {
		case i == self:
		case l.reported.machine != "" && met[l.reported.machine]:
			others = append(others, uint32(i))
		default:
			met[l.reported.machine] = true
			order = append(order, uint32(i))
		}
	}
	return append(order, others...)
}

// self returns the number of this process.
func (g *viewGroup) self() int {
	if len(g.numbers) == 0 {
		return 0
	}
	return g.numbers[len(g.numbers)-1]
}

// sources returns the peers that requested a change, as far as they are known.
func (g *viewGroup) sources(c viewgroup.Committed) (ids []p2ppeer.ID) {
	for _, number := range c.By {
		if id, ok := g.group.IDOf(number); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// accusation names the peers that failed a process, as the rest of a sentence. It is "" if they are
// unknown.
func (g *viewGroup) accusation(c viewgroup.Committed) string {
	var names []string
	for _, id := range g.sources(c) {
		names = append(names, short(id))
	}
	switch l := g.peers.runsOn[c.Change.Process]; {
	case len(names) == 0:
		return ""
	case l != nil && len(c.By) == 1 && c.By[0] == l.number:
		return fmt.Sprintf("failed, says its own peer %s", names[0])
	}
	return fmt.Sprintf("failed, say the peers %s", strings.Join(names, ", "))
}

// A roster lists the peers that have ever had a number in the view group, by number.
type roster struct {
	peers  []p2ppeer.ID // "": the number was never used
	first  int          // number of peers at the start
	runsOn []int        // number of the peer of each process at the start, rank by rank
}

// roster returns the peers of the view group.
func (g *viewGroup) roster() (r roster) {
	set := func(number int, id p2ppeer.ID) {
		r.peers = append(r.peers, make([]p2ppeer.ID, max(0, number+1-len(r.peers)))...)
		r.peers[number] = id
	}
	self := g.j.s.cfg.Host.ID()
	set(0, self)
	r.first = 1
	for _, number := range g.numbers {
		set(number, self)
	}
	for _, l := range g.peers.links {
		if l.number > 0 {
			set(l.number, l.peer)
		}
		if l.processes[0].Replica < g.j.req.R {
			r.first = max(r.first, l.number+1)
		}
	}
	for _, p := range view.New(g.j.req.N, g.j.req.R).Processes() {
		r.runsOn = append(r.runsOn, g.peers.runsOn[p].number)
	}
	return r
}

// agreeMessage tells a new peer of the job the members of the view group, including itself.
func (g *viewGroup) agreeMessage() *jobpb.ToPeer {
	r := g.roster()
	m := &jobpb.Agree{First: uint32(r.first)}
	for _, id := range r.peers {
		m.Peers = append(m.Peers, []byte(id))
	}
	for _, number := range r.runsOn {
		m.RunsOn = append(m.RunsOn, uint32(number))
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Agree{Agree: m}}
}

// rejoin joins the view group of a job that an earlier process of the submitter started, under the
// last of g.numbers. v is the job's first view.
func (g *viewGroup) rejoin(v view.View) error {
	r, self := g.roster(), g.self()
	n := &viewgroup.Newcomer{Peer: self, ID: g.j.s.cfg.Host.ID(), Process: viewgroup.NoProcess}
	if err := n.Sign(g.j.s.cfg.Key, g.j.spec.ID); err != nil {
		return err
	}
	c := viewgroup.GroupConfig{
		Job: g.j.spec.ID, Peers: r.peers, First: r.first, Members: viewgroup.Members(r.first), Self: self,
		View: v, RunsOn: make(map[view.Process]int), Introduction: n,
		Committed: g.events.committed, Contact: g.events.contacted,
		Came: func(viewgroup.Newcomer) {}, // their peers are recorded
	}
	for i, p := range v.Processes() {
		c.RunsOn[p] = r.runsOn[i]
	}
	var err error
	if g.group, err = g.j.s.cfg.Views.Join(c); err != nil {
		return fmt.Errorf("join the view group: %w", err)
	}
	g.behind = true
	return nil
}

// registerRecruit records the process of a recruit, and gives its peer an unused number in the view
// group. The submitter's own peer has a number already, and so has a peer that already runs
// processes of the job. The returned function undoes both.
func (g *viewGroup) registerRecruit(l *link, p view.Process, key []byte) (undo func()) {
	number, processes := l.number, l.processes
	if l.recruit == nil {
		l.processes = append(slices.Clone(l.processes), p)
	} else if g.group != nil && l.peer != g.j.s.cfg.Host.ID() {
		l.number = len(g.roster().peers)
	}
	l.keys[p] = key
	return func() {
		l.number, l.processes = number, processes
		delete(l.keys, p)
	}
}

// introduce tells the members of the view group which peer runs the process of a recruit. That peer
// becomes a member unless it already is one.
func (g *viewGroup) introduce(l *link, p view.Process) {
	if l.number == 0 {
		return
	}
	g.group.Introduce(g.newcomer(l, p))
	if l.recruit != nil {
		l.send(g.agreeMessage())
	}
}

// newcomer returns the signed introduction of the peer of l, where p runs, to the view group.
func (g *viewGroup) newcomer(l *link, p view.Process) viewgroup.Newcomer {
	encoded, err := proto.Marshal(g.peers.row(l, p))
	if err != nil {
		panic(err) // fails only for strings that are not UTF-8; there are none
	}
	n := viewgroup.Newcomer{Peer: l.number, ID: l.peer, Process: p, Row: encoded}
	if err := n.Sign(g.j.s.cfg.Key, g.j.spec.ID); err != nil {
		g.j.warn(err.Error())
	}
	return n
}

// mayEndPart reports whether the job's part at a peer can end without harm to the view group. If the
// peer votes, mayEndPart asks the group to remove it first: several voters that leave at once could
// break the majority. The submitter's own peer stays a member.
func (g *viewGroup) mayEndPart(l *link) bool {
	if g.group == nil || l.peer == g.j.s.cfg.Host.ID() || !g.group.Votes(l.peer) {
		return true
	}
	g.group.Gone(l.peer)
	return false
}

// inTouch reports whether the submitter is in touch with the majority of the view group, or needs no
// majority.
func (g *viewGroup) inTouch() bool {
	return g.group == nil || g.group.Contact() == viewgroup.InTouch
}

// cutOff reports whether the submitter is cut off from the majority of the view group.
func (g *viewGroup) cutOff() bool {
	return g.group != nil && g.group.Contact() == viewgroup.CutOff
}

// majorityElsewhere reports whether the voters that are not known to be lost are a majority without
// the submitter. A new process that is behind does not know the voters, so each peer may be one.
func (g *viewGroup) majorityElsewhere() bool {
	switch {
	case g.group == nil:
		return false
	case g.behind:
		return len(g.peers.partners()) > 0
	}
	left := g.peers.count(func(l *link) bool { return !l.retired && l.peer != g.j.s.cfg.Host.ID() && g.group.Votes(l.peer) })
	return 2*left > g.group.Voters()
}

// propose requests a change of the view. It returns false if there is no view group, so that the
// change takes effect at once.
func (g *viewGroup) propose(c view.Change) bool {
	if g.group != nil {
		g.group.Propose(c)
	}
	return g.group != nil
}

// remove removes a peer that the job has given up.
func (g *viewGroup) remove(l *link) {
	if g.group != nil { // ignores peers outside the group
		g.group.Gone(l.peer)
	}
}

func (g *viewGroup) close() {
	if g.group != nil {
		g.group.Close()
	}
}
