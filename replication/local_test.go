package replication

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A register assigns small numbers to values. Equal values get the same number.
type register[K comparable, V any] struct {
	numbers map[K]uint32
	all     []V
}

// number returns the number of k. It calls make once for each k.
func (r *register[K, V]) number(k K, make func() V) uint32 {
	if n, ok := r.numbers[k]; ok {
		return n
	}
	if r.numbers == nil {
		r.numbers = map[K]uint32{}
	}
	n := uint32(len(r.all))
	r.numbers[k] = n
	r.all = append(r.all, make())
	return n
}

// An incident is an event at one process.
type incident struct {
	kind incidentKind
	from uint8  // for delivered and reopened: the process at the other end
	what uint32 // the frame for delivered; the view for learned and begins
}

type incidentKind uint8

const (
	called    incidentKind = iota // its program makes a call
	ticked                        // some time passes
	learned                       // it gets a view
	reopened                      // its channel to a process was lost and reopened
	begins                        // it joins its rank, with a view
	delivered                     // a frame arrives
)

// An effect is the result of an incident.
type effect struct {
	next     uint32 // local state
	posts    []post
	observed []observation
	shown    []uint64 // points whose outcome the program may see from now on
	// upToDate is the statement that lets the process count again, or zero.
	upToDate protection.UpToDate
	err      error // a promise that was broken
}

// A post is a frame and its destination.
type post struct {
	to    int
	frame uint32
}

// An observation is the program's knowledge after the step-th of its calls that return something.
type observation struct {
	step int
	seen memory
}

// A local is one state of one process, as far as the checks need it. The process is not stored but recreated by
// repeating its incidents, so the protocol does not need a method to copy it.
type local struct {
	at          int // process
	parent      uint32
	by          incident
	root        bool
	epoch       uint64
	active      bool
	notStarted  bool
	logComplete bool // has the complete history of its rank
	joining     bool
	cut         bool
	done        bool // the program has made its last call
	decider     bool
	failed      uint64 // bit per process that is known to have failed
	known       uint64 // bit per process that is known to have started
	keeps       int
	decided     map[uint64]bool // points with an outcome
	flows       map[stream]flow // keyed by context and rank at the other end
}

// A flow is the progress of one stream at one process.
type flow struct {
	sent     uint64 // last number
	kept     uint64 // oldest number in the backup table, or sent+1 if the table has none
	received uint64 // last number
}

// locals contains the states of single processes of a scenario. A protocol is deterministic, so each incident in
// each state is run once, however many states of the whole job include that state.
type locals struct {
	scenario
	ids    []view.Process
	states register[[sha256.Size]byte, *local]
	frames register[frameKey, frame.Frame]
	views  register[string, view.View]
	memo   map[moment]*effect
}

type moment struct {
	state uint32
	incident
}

// A frameKey is a comparable form of a frame with its payload.
type frameKey struct {
	frame.Header
	payload string
}

func newLocals(sc scenario) *locals {
	l := &locals{scenario: sc, memo: make(map[moment]*effect)}
	l.ids = view.New(sc.n, l.most()).Processes()
	return l
}

// most returns the greatest number of replicas of a rank.
func (l *locals) most() int { return l.r + int(l.allowed.joins) }

// begin returns the initial state of each process.
func (l *locals) begin() []uint32 {
	var first []uint32
	for i := range l.ids {
		first = append(first, l.enter(l.fresh(i), local{at: i, root: true}))
	}
	return first
}

func (l *locals) fresh(i int) *process {
	id := l.ids[i]
	return newProcess(id, view.New(l.n, l.r), l.scripts[id.Rank], &recorder{locals: l})
}

// restore returns a process in the given state.
func (l *locals) restore(state uint32) *process {
	p := l.fresh(l.states.all[state].at)
	for _, before := range l.history(state) {
		if err := l.let(p, before); err != nil {
			panic(fmt.Sprintf("%v behaves differently when its incidents are repeated: %v", p.id, err))
		}
	}
	p.host.(*recorder).forget()
	return p
}

// viewNumber returns the number of v, which is determined by its epoch and states.
func (l *locals) viewNumber(v view.View) uint32 {
	return l.views.number(fmt.Sprint(v), func() view.View { return v })
}

// happen returns the effect of an incident in a state.
func (l *locals) happen(state uint32, in incident) *effect {
	m := moment{state, in}
	if known := l.memo[m]; known != nil {
		return known
	}
	e := l.work(state, in)
	l.memo[m] = e
	return e
}

// work applies an incident to a process in the given state.
func (l *locals) work(state uint32, in incident) *effect {
	at := l.states.all[state].at
	p := l.restore(state)
	rec, seen := p.host.(*recorder), len(p.log)
	if err := l.let(p, in); err != nil {
		return &effect{err: err}
	}
	e := &effect{posts: rec.posts, shown: rec.shown, upToDate: rec.upToDate}
	for i, m := range p.log[seen:] {
		e.observed = append(e.observed, observation{seen + i, m})
	}
	e.next = l.enter(p, local{at: at, parent: state, by: in})
	e.err = l.checkFenced(state, in, e)
	return e
}

// checkFenced checks R5. A frame of a process that the receiver knows to have failed changes nothing. A
// process that knows itself to be out of the view does nothing. It also checks that no process returns to
// an older view (V1).
func (l *locals) checkFenced(state uint32, in incident, e *effect) error {
	before := l.states.all[state]
	if in.kind == delivered && before.failed&(1<<in.from) != 0 && (e.next != state || len(e.posts) > 0) {
		return fmt.Errorf("R5: %v processes a frame of %v, which it knows to have failed", l.ids[before.at], l.ids[in.from])
	}
	after := l.states.all[e.next]
	if after.epoch < before.epoch {
		return fmt.Errorf("V1: %v goes back from epoch %d to %d", l.ids[before.at], before.epoch, after.epoch)
	}
	if after.active {
		return nil
	}
	p := l.restore(e.next)
	other := l.otherThan(e.next)
	outs := []protection.Output{
		p.Tick(), p.Send(protection.Message{Dest: other.Rank}), p.Reopened(other),
		p.Decide(protection.Determinant{Point: protection.Point{Index: 99}}),
	}
	f := protection.DataFrame(protection.Message{Source: other.Rank, Seq: p.Received(named, other.Rank) + 1})
	out, err := p.Receive(other, f)
	if err != nil {
		return fmt.Errorf("R5: %v, which is out of the view: %w", p.id, err)
	}
	for _, out := range append(outs, out) {
		if len(out.Send)+len(out.Deliver)+len(out.Decided) > 0 {
			return fmt.Errorf("R5: %v is out of the view but outputs %+v", p.id, out)
		}
	}
	return nil
}

// otherThan returns another process in the view of the process in the given state, preferably of another rank.
func (l *locals) otherThan(state uint32) view.Process {
	s := l.states.all[state]
	self, found := l.ids[s.at], view.Process{}
	for i, q := range l.ids {
		if s.known&(1<<i) != 0 && q != self && (found == view.Process{} || q.Rank != self.Rank) {
			found = q
		}
	}
	return found
}

// history returns the incidents that led to a state, in order.
func (l *locals) history(state uint32) []incident {
	s := l.states.all[state]
	if s.root {
		return nil
	}
	return append(l.history(s.parent), s.by)
}

// let applies an incident to p, and then runs the calls of its program that only take messages or outcomes that
// have already arrived. These calls affect only the program, and later events of the protocol do not affect them.
// So their time makes no difference.
func (l *locals) let(p *process, in incident) error {
	if err := l.meet(p, in); err != nil {
		return err
	}
	for at := -1; at < p.pc && !p.done() && p.takesPart(); {
		o := p.script[p.pc]
		if _, ok := p.decided[o.index]; !o.shows() || o.points() && !ok {
			return nil
		}
		at = p.pc
		if err := p.step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *locals) meet(p *process, in incident) error {
	switch in.kind {
	case called:
		return p.step()
	case ticked:
		return p.host.carryOut(p, p.Tick())
	case begins:
		p.begin(l.views.all[in.what])
		return nil
	case learned:
		return p.host.carryOut(p, p.View(l.views.all[in.what]))
	case reopened:
		return p.host.carryOut(p, p.Reopened(l.ids[in.from]))
	}
	out, err := p.Receive(l.ids[in.from], l.frames.all[in.what])
	if err != nil {
		return fmt.Errorf("%v: %w", p.id, err)
	}
	return p.host.carryOut(p, out)
}

// enter stores the state of p under its number.
func (l *locals) enter(p *process, s local) uint32 {
	if !p.notStarted() {
		p.reset()
	}
	if l.allowed.joins == 0 {
		p.messageLog, p.prologue = nil, nil // not requested by any process
	}
	key := sha256.Sum256(canonical(struct {
		*Protocol
		at         int // distinguishes processes that have not started
		pc         int
		seen       memory
		arrived    []protection.Message
		last       map[stream]uint64
		decided    map[uint64][]byte
		tried      map[uint64]bool
		messageLog []byte
		cut        bool
		of         checkpoints
	}{p.Protocol, s.at, p.pc, p.seen, p.arrived, p.last, p.decided, p.tried, p.messageLog, p.cut, p.checkpoints}))
	return l.states.number(key, func() *local {
		if s.notStarted = p.notStarted(); s.notStarted {
			s.active = true
			return &s
		}
		s.epoch, s.active, s.done, s.keeps = p.v.Epoch, p.active(), p.done(), p.Retained()
		s.decider = p.active() && p.Decider()
		s.logComplete, s.joining, s.cut = p.logComplete(), p.Joining(), p.cut
		for i, q := range l.ids {
			if p.v.State(q) == view.Failed {
				s.failed |= 1 << i
			}
			if p.v.State(q) != view.Vacant {
				s.known |= 1 << i
			}
		}
		s.decided, s.flows = make(map[uint64]bool), make(map[stream]flow)
		for _, o := range p.script {
			if o.points() {
				s.decided[o.index] = p.agreement.decisions.has(o.point())
			}
		}
		for _, context := range []uint32{named, wild} {
			for rank := range l.n {
				s.flows[stream{context, rank}] = flowOf(p.Protocol, context, rank)
			}
		}
		return &s
	})
}

func flowOf(p *Protocol, context uint32, rank int) flow {
	f := flow{sent: p.Sent(context, rank), received: p.Received(context, rank)}
	f.kept = f.sent + 1
	if b := p.outbox.streams[stream{context, rank}]; b != nil && b.head < len(b.queue) {
		f.kept = b.queue[b.head].m.Seq
	}
	return f
}

// A recorder records the output of a process.
type recorder struct {
	locals   *locals
	posts    []post
	shown    []uint64
	upToDate protection.UpToDate
}

func (r *recorder) carryOut(p *process, out protection.Output) error {
	if !p.active() && len(out.Send)+len(out.Deliver)+len(out.Decided) > 0 {
		return fmt.Errorf("R5: %v is out of the view but outputs %+v", p.id, out)
	}
	if len(out.Diverged) > 0 {
		return fmt.Errorf("R1: %v reports a difference between replicas: %+v", p.id, out.Diverged)
	}
	if err := p.take(out); err != nil {
		return err
	}
	if out.UpToDate != (protection.UpToDate{}) {
		r.upToDate = out.UpToDate
	}
	for _, e := range append(out.Send, p.pieces(out)...) {
		f := e.Frame
		n := r.locals.frames.number(frameKey{f.Header, string(f.Payload)}, func() frame.Frame { return f })
		r.posts = append(r.posts, post{e.To.Rank*r.locals.most() + e.To.Replica, n})
	}
	for _, d := range out.Decided {
		r.shown = append(r.shown, d.Index)
	}
	return nil
}

func (r *recorder) piece(p *process) int { return cmp.Or(r.locals.scenario.piece, len(p.messageLog)) }

func (r *recorder) forget() { r.posts, r.shown, r.upToDate = nil, nil, protection.UpToDate{} }

// draw returns a number that differs from replica to replica.
func (r *recorder) draw(p *process) uint64 { return uint64(p.id.Replica) + 1 }

func (r *recorder) ahead() bool { return false }
