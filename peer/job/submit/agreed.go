package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

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

var errOutside = errors.New("it has left the view group")

// takeAgreed handles the events of the view group.
func (e *execution) takeAgreed() (r *job.Result) {
	changes, contact, turned := e.agreed.take()
	if e.partitioned { // the messages that led to the changes have not arrived yet
		e.pendingChanges = append(e.pendingChanges, changes...)
		changes = nil
	}
	for _, c := range changes {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	switch err := e.views.Err(); {
	case !turned:
	case err != nil:
		return &job.Result{
			Status: job.StatusLost, Message: "the job's peers cannot agree any more: " + err.Error(),
			Hint: "start it again without that peer (--not-peer)",
		}
	case e.partitioned:
		e.peersDeadline = nil
		if contact == viewgroup.InTouch {
			e.peersDeadline = time.After(e.j.s.waits.reconnect)
		}
	case contact == viewgroup.InTouch:
		e.regroup()
	case contact == viewgroup.CutOff && e.leaves():
		r = cmp.Or(r, e.beginPartition("cut off from the majority of the job's peers, which may continue without this machine"))
	case contact == viewgroup.CutOff:
		for _, l := range e.deferredFailures {
			r = cmp.Or(r, e.loseSilentPeer(l))
		}
		e.deferredFailures = nil
		r = cmp.Or(r, e.apply(e.state.CutOff()))
	}
	return r
}

// applyAgreed applies a change that was agreed on. It records which peers requested a failure, for
// the user, unless a reason is known already.
func (e *execution) applyAgreed(c viewgroup.Committed) *job.Result {
	switch p := c.Change.Process; c.Change.To {
	case view.Failed:
		e.state.Attribute(p, e.accusation(c))
	case view.Finished:
		if e.state.Unexplained(p) && e.exitDeadline == nil {
			e.exitDeadline = time.After(e.j.s.waits.reconnect)
		}
	}
	return e.commit(c.Change, e.sources(c))
}

// commit applies a change of the view that the given peers requested.
func (e *execution) commit(c view.Change, by []p2ppeer.ID) *job.Result {
	s := e.state.Committed(c)
	for _, id := range by {
		s.By = append(s.By, id.String())
	}
	if s.View != nil {
		e.j.log.Info().Stringer("change", c).Strs("by", s.By).Msg("view changed")
	}
	return e.apply(s)
}

// sources returns the peers that requested a change, as far as they are known.
func (e *execution) sources(c viewgroup.Committed) (ids []p2ppeer.ID) {
	for _, number := range c.By {
		if id, ok := e.views.IDOf(number); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// loseUnreported gives up the peers whose processes have finished in the view but whose end they
// have not reported within waits.reconnect. No other peer can report it, and the rank would wait
// for its output forever.
func (e *execution) loseUnreported() (r *job.Result) {
	e.exitDeadline = nil
	for _, l := range e.peers.links {
		if l.err == nil && !isDisconnected(l) && slices.ContainsFunc(l.processes, e.state.Silent) {
			r = cmp.Or(r, e.protocolError(l, errors.New("its process has finished, but it has not reported the exit")))
		}
	}
	return r
}

// accusation names the peers that failed a process, as the rest of a sentence. It is "" if they are
// unknown.
func (e *execution) accusation(c viewgroup.Committed) string {
	var names []string
	for _, id := range e.sources(c) {
		names = append(names, short(id))
	}
	switch l := e.peers.runsOn[c.Change.Process]; {
	case len(names) == 0:
		return ""
	case l != nil && len(c.By) == 1 && c.By[0] == l.number:
		return fmt.Sprintf("failed, says its own peer %s", names[0])
	}
	return fmt.Sprintf("failed, say the peers %s", strings.Join(names, ", "))
}

// joinViews starts the view group of the job's peers and the submitter's peer. It returns the
// indices of all of them in e.group, in the order in which they are preferred as voters. It returns
// none if there is no group: the submitter of a job without replicas ends it whatever fails, and
// neither of two peers is a majority.
func (e *execution) joinViews() ([]uint32, error) {
	if e.j.req.R < 2 || viewgroup.Members(len(e.group)) < 3 {
		return nil, nil
	}
	order := e.voters()
	c := viewgroup.GroupConfig{
		Job: e.j.spec.ID, First: len(order), Members: viewgroup.Members(len(order)),
		View: e.state.View(), RunsOn: make(map[view.Process]int),
		Committed: e.agreed.committed, Contact: e.agreed.contacted,
		Came: func(viewgroup.Newcomer) {}, // only this peer introduces newcomers
	}
	for i, member := range order {
		c.Peers = append(c.Peers, e.group[member])
		if l := e.peers.linkTo(e.group[member]); l != nil {
			l.number = i
			for _, p := range l.processes {
				c.RunsOn[p] = i
			}
		}
	}
	var err error
	if e.views, err = e.j.s.cfg.Views.Join(c); err != nil {
		return nil, fmt.Errorf("join the view group: %w", err)
	}
	return order, nil
}

// registerRecruit records the process of a recruit, and gives its peer an unused number in the view
// group. The submitter's own peer has a number already, and so has a peer that already runs
// processes of the job. The returned function undoes both.
func (e *execution) registerRecruit(l *link, p view.Process, key []byte) (undo func()) {
	number, processes := l.number, l.processes
	if l.recruit == nil {
		l.processes = append(slices.Clone(l.processes), p)
	} else if (e.views != nil || e.resumption != nil) && l.peer != e.j.s.cfg.Host.ID() {
		l.number = len(e.agreeMessage().GetAgree().Peers)
	}
	l.keys[p] = key
	return func() {
		l.number, l.processes = number, processes
		delete(l.keys, p)
	}
}

// introduce tells the members of the view group which peer runs the process of a recruit. That peer
// becomes a member unless it already is one.
func (e *execution) introduce(l *link, p view.Process) {
	if l.number == 0 {
		return
	}
	e.views.Introduce(e.newcomer(l, p))
	if l.recruit != nil {
		l.send(e.agreeMessage())
	}
}

// newcomer returns the signed introduction of the peer of l, where p runs, to the view group.
func (e *execution) newcomer(l *link, p view.Process) viewgroup.Newcomer {
	encoded, err := proto.Marshal(e.peers.row(l, p))
	if err != nil {
		panic(err) // fails only for strings that are not UTF-8; there are none
	}
	n := viewgroup.Newcomer{Peer: l.number, ID: l.peer, Process: p, Row: encoded}
	if err := n.Sign(e.key(), e.j.spec.ID); err != nil {
		e.j.warn(err.Error())
	}
	return n
}

// agreeMessage tells a new peer of the job the members of the view group, including itself.
func (e *execution) agreeMessage() *jobpb.ToPeer {
	m := &jobpb.Agree{Peers: [][]byte{[]byte(e.j.s.cfg.Host.ID())}, First: 1, Anew: e.resumption != nil}
	for _, l := range e.peers.links {
		for l.number >= len(m.Peers) {
			m.Peers = append(m.Peers, nil)
		}
		if l.number > 0 {
			m.Peers[l.number] = []byte(l.peer)
		}
		if l.processes[0].Replica < e.j.req.R {
			m.First = max(m.First, uint32(l.number)+1)
		}
	}
	for _, p := range view.New(e.j.req.N, e.j.req.R).Processes() {
		m.RunsOn = append(m.RunsOn, uint32(e.peers.runsOn[p].number))
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Agree{Agree: m}}
}

// voters orders the members of the detector group by preference as voters: the submitter's peer,
// then one peer per machine, then the rest. Peers on one machine are lost together.
func (e *execution) voters() []uint32 {
	self := slices.Index(e.group, e.j.s.cfg.Host.ID())
	order, others := []uint32{uint32(self)}, []uint32(nil)
	met := make(map[string]bool)
	if l := e.peers.linkTo(e.group[self]); l != nil {
		met[l.machine] = true
	}
	for i, id := range e.group {
		l := e.peers.linkTo(id)
		switch {
		case i == self:
		case l.machine != "" && met[l.machine]:
			others = append(others, uint32(i))
		default:
			met[l.machine] = true
			order = append(order, uint32(i))
		}
	}
	return append(order, others...)
}
