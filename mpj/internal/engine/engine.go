package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// ErrExpelled ends an engine whose own process has left the view: what it
// computes from then on is nobody's answer (R5).
var ErrExpelled = errors.New("this process is out of the job's view")

// A Config says what an engine works for and with.
type Config struct {
	Self view.Process
	View view.View
	// Protocol protects the process; nil when there are no replicas.
	Protocol protection.Protocol
	Opener   channel.Opener
	// Bell is where this process sleeps when it waits for rings; nil when it has
	// none.
	Bell Bell
	// Crowded says that the job has more processes here than there are
	// processors.
	Crowded bool
	// Clock returns the time since some moment in the past, for Wtime.
	Clock func() time.Duration
	// Diverged is told what the protocol says about messages that replicas have not
	// produced alike, maxDiverged times at most. It may block.
	Diverged func(protection.Divergence)
	// Past keeps what reaches this process, for replicas that join its rank later; nil:
	// nobody does. The engine closes it. Unkept is told why that can be no more, for good
	// or, once, until the program's next checkpoint.
	Past   *Past
	Unkept func(why string, forGood bool)
	// Joined is told, if this process is new in a rank that runs, that it does now what
	// its rank does: how many messages it was given anew, and their bytes. It may block.
	Joined func(messages, bytes uint64)
	// Ahead is told, now and then, that the process is ahead of its rank's master. It
	// may block.
	Ahead func()
	// Stalled is called, now and then, while the rank waits for other replicas to receive an outcome. It may
	// block.
	Stalled func()
	// UpToDate is called while this process is set aside, with the master's statement that the process lacks
	// nothing: with that statement it may count again. UpToDate may block.
	UpToDate func(protection.UpToDate)
}

// An Engine is the engine of one process. Its methods may be called by several
// goroutines; of calls whose outcome depends on timing, one at a time.
type Engine struct {
	self     view.Process
	opener   channel.Opener
	clock    func() time.Duration
	tell     func(protection.Divergence)
	past     *Past // nil: none
	unkept   func(why string, forGood bool)
	joined   func(messages, bytes uint64) // nil once told
	state    *draft                       // the received part of the checkpoint that this process resumes from
	ahead    func()
	upToDate func(protection.UpToDate)
	onStall  func()
	stall    stall

	ctx     context.Context // of everything that blocks; ends with the engine
	cancel  context.CancelFunc
	stopped chan struct{}  // closed when err is set
	running sync.WaitGroup // readers, writers and the tick

	mu        sync.Mutex
	err       error // why the engine has stopped
	view      view.View
	protocol  protection.Protocol // nil: see direct.go
	decider   bool                // what protocol.Decider said last
	mailboxes map[uint32]*mailbox
	last      uint32 // the mailbox that was used last
	lastBox   *mailbox
	open      map[protection.Point]*decision // reached, not decided
	early     map[protection.Point][]byte    // decided, not reached

	applying   bool // apply is working off the next two
	deliveries []protection.Message
	outcomes   []protection.Determinant

	outlets    []*outlet // by process: rank*r + replica
	inlets     []*inlet
	callers    []caller // who have a channel to this process and are not in its view
	poller     poller
	loans      int // inlets that are lent
	sleepers   []*waiter
	sleeps     uint64     // so far
	requests   []*Request // to be used again
	waiters    []*waiter
	shorts     [][]byte
	shortsMade int            // by room
	queued     int            // bytes in outlets
	writes     int            // the rank whose channels the goroutine that holds mu will write to, or noRank
	stalled    []*heldSend    // of held, those that wait for the load
	sent       Request        // of every send that was done at once
	flush      *waiter        // of Flush
	unreached  []view.Process // of Flush: who has not answered askReached
	tick       *time.Timer
	ticking    bool

	// With a protocol:
	credits  credits
	flows    []flow                    // by rank
	whole    bool                      // this process is not new, or whole
	held     map[letter]*heldSend      // what is sent and not done
	receipts map[letter]struct{}       // of synchronous sends, that came before them
	asked    map[letter][]view.Process // who wants to know when a message has been matched
	// lent counts who uses a payload that a send has copied, if its memory is to be
	// used again: the protocol and the queues that it is in.
	lent map[*byte]int

	postponed []protection.Envelope // Recalls that wait for the program
	uneaten   int                   // bytes that waited for it at the last tick

	relived, relivedBytes uint64 // messages of the rank's past that were given to this process

	resuming *waiter // of Checkpoint, for a checkpoint to come

	diverged int // times that tell has been called
	telling  int // calls of it that have not returned

	// Without a protocol:
	bodies      int    // payloads that wait for their receive, or are on their way
	finished    []bool // by rank: it sends nothing more
	anyFinished bool
	undrained   bool // messages of theirs may still be in rings

	ending    bool // in Flush: the program receives nothing more
	refused   []Unmatched
	selfSeq   uint64 // messages of this process to itself
	selfBytes int    // of these, those that have not been matched

	bears time.Duration // see Bear

	pace pace

	clockOffset float64 // seconds that make clock continue the last decider's
	time        float64 // last outcome of Wtime
}

// New returns the engine of a process. It stops, and fails all calls, when ctx
// ends; Close must be called in any case.
func New(ctx context.Context, c Config) *Engine {
	e := &Engine{
		self: c.Self, opener: c.Opener, clock: c.Clock, tell: c.Diverged, past: c.Past, unkept: c.Unkept,
		ahead:    c.Ahead,
		upToDate: c.UpToDate, onStall: c.Stalled,
		stopped:   make(chan struct{}),
		view:      c.View,
		protocol:  c.Protocol,
		decider:   c.Protocol == nil || c.Protocol.Decider(),
		mailboxes: make(map[uint32]*mailbox),
		open:      make(map[protection.Point]*decision),
		early:     make(map[protection.Point][]byte),
		sent:      Request{done: true},
		outlets:   make([]*outlet, c.View.N*c.View.R),
		inlets:    make([]*inlet, c.View.N*c.View.R),
		poller:    poller{bell: c.Bell, crowded: c.Crowded, kick: make(chan struct{}, 1)},
		held:      make(map[letter]*heldSend),
		receipts:  make(map[letter]struct{}),
		asked:     make(map[letter][]view.Process),
		lent:      make(map[*byte]int),
		writes:    noRank,
		pace:      newPace(),
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.mu.Lock()
	if e.protocol != nil {
		if e.whole = !e.protocol.Joining(); !e.whole {
			e.joined = c.Joined
		}
		e.newFlows(!e.whole)
		e.armTick() // the view may already name this process master
	}
	e.mu.Unlock()
	if c.Bell != nil {
		e.running.Add(1)
		go e.pump() // until the engine stops
	}
	e.running.Add(1)
	context.AfterFunc(e.ctx, func() { // runs at the latest when Close cancels
		defer e.running.Done()
		e.Fail(context.Cause(ctx))
	})
	return e
}

// Context returns a context that ends when the engine stops.
func (e *Engine) Context() context.Context { return e.ctx }

// View takes a newer view of the job.
func (e *Engine) View(v view.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v.Epoch <= e.view.Epoch || e.err != nil {
		return
	}
	e.grow(v)
	before := e.view
	if e.view = v; v.State(e.self) == view.Failed {
		e.fail(ErrExpelled)
		return
	}
	e.meet()
	for _, o := range e.outlets {
		if o != nil && !v.Live(o.to) {
			e.drop(o)
		}
	}
	for _, in := range e.inlets { // who reads may have to read another one
		if in != nil && in.loan != nil && in.loan.borrowed {
			in.loan.borrower.wake()
		}
	}
	if e.protocol == nil {
		e.meetFinished()
		return
	}
	if rank := e.self.Rank; v.Since[rank] != before.Since[rank] {
		e.pace.moved(before.IsMaster(e.self))
	}
	e.meetFlows(before)
	e.apply(e.protocol.View(v))
	e.queryAll(noRank)
	e.relieve()
	e.armTick()
	e.meetFinished()
}

// grow makes room for the processes of v. e.mu is held.
func (e *Engine) grow(v view.View) {
	if v.R == e.view.R {
		return
	}
	outlets, inlets := make([]*outlet, v.N*v.R), make([]*inlet, v.N*v.R)
	for rank := range v.N {
		copy(outlets[rank*v.R:], e.outlets[rank*e.view.R:(rank+1)*e.view.R])
		copy(inlets[rank*v.R:], e.inlets[rank*e.view.R:(rank+1)*e.view.R])
	}
	e.outlets, e.inlets = outlets, inlets
}

// apply does what the protocol asks for. Deliveries and outcomes may lead to
// further calls of the protocol, so they are copied first and worked off here,
// whatever depth apply is called at. e.mu is held.
func (e *Engine) apply(out protection.Output) {
	if out.Lost != "" {
		e.fail(errors.New(out.Lost))
		return
	}
	if e.decider && !e.protocol.Decider() {
		e.stepDown()
	}
	for _, envelope := range out.Send {
		if envelope.Frame.Kind == frame.Recall && e.sated() {
			e.postponed = append(e.postponed, envelope)
			continue
		}
		e.hold(envelope.Frame.Payload)
		e.enqueue(envelope)
	}
	for _, payload := range out.Released {
		e.letGo(payload)
	}
	for _, d := range out.Diverged {
		e.tellDiverged(d)
	}
	for _, r := range out.Recalls {
		e.recall(r)
	}
	if out.UpToDate != (protection.UpToDate{}) && e.upToDate != nil {
		e.running.Go(func() { e.upToDate(out.UpToDate) }) // until that returns
	}
	if len(out.State) > 0 {
		e.takeState(out.State)
	}
	e.keepPast(out)
	e.deliveries = append(e.deliveries, out.Deliver...)
	e.outcomes = append(e.outcomes, out.Decided...)
	if e.applying {
		return
	}
	e.applying = true
	for i, j := 0, 0; i < len(e.deliveries) || j < len(e.outcomes); {
		if j < len(e.outcomes) {
			e.decided(e.outcomes[j])
			j++
			continue
		}
		e.deliver(e.deliveries[i])
		i++
	}
	clear(e.deliveries)
	clear(e.outcomes)
	e.deliveries, e.outcomes = e.deliveries[:0], e.outcomes[:0]
	e.applying = false
	if e.protocol.Waiting() {
		e.armTick()
	}
	if !e.decider && e.protocol.Decider() {
		e.decider = true
		e.takeOver()
	}
	if !e.whole && e.protocol.Whole() {
		e.becomeWhole()
	}
	if e.joined != nil && !e.protocol.Joining() {
		e.tellJoined()
	}
}

// mailbox returns the mailbox of context.
func (e *Engine) mailbox(context uint32) *mailbox {
	if e.last == context && e.lastBox != nil {
		return e.lastBox
	}
	b := e.mailboxes[context]
	if b == nil {
		b = new(mailbox)
		e.mailboxes[context] = b
	}
	e.last, e.lastBox = context, b
	return b
}

func (e *Engine) deliver(m protection.Message) {
	b := e.mailbox(m.Context)
	if b.abandoned {
		e.takeUnreceived(message{Message: m})
		return
	}
	if r, m, ok := b.arrive(m, e.decider); ok {
		e.matched(r, m)
	} else if e.ending {
		e.forgo(&b.unexpected[len(b.unexpected)-1])
	}
	b.wakeProbes()
}

// settle makes all matches that have become possible in b.
func (e *Engine) settle(b *mailbox) {
	for {
		r, m, ok := b.match(e.decider, func(*Request) bool { return true })
		if !ok {
			b.wakeProbes()
			return
		}
		e.matched(r, m)
	}
}

// matched completes r with m, by way of a decision when r is a wildcard.
func (e *Engine) matched(r *Request, m message) {
	if r.proposed {
		e.propose(r)
		return
	}
	e.complete(r, m)
}

// complete ends receive r with m.
func (e *Engine) complete(r *Request, m message) {
	e.take(&m.Message)
	e.report(m)
	r.complete(m)
}

// Fail stops the engine: every call that waits, and every later one, returns
// err. The first call counts.
func (e *Engine) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail(err)
}

func (e *Engine) fail(err error) {
	if e.err != nil {
		return
	}
	if err == nil {
		err = ErrClosed
	}
	e.err = err
	close(e.stopped)
	e.cancel()
	for _, o := range e.outlets {
		e.drop(o)
	}
	for _, in := range e.inlets {
		if in != nil && in.ring == nil {
			in.receiver.Close()
		}
	}
	for _, w := range e.sleepers {
		w.wake()
	}
	e.poller.awaited.wake()
	if e.poller.bell != nil {
		e.poller.bell.Disarm()
	}
	if e.tick != nil && e.tick.Stop() {
		e.running.Done()
	}
}

// Close stops the engine and returns when all its goroutines have ended.
func (e *Engine) Close() {
	e.Fail(ErrClosed)
	e.running.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.past.close()
	if e.state != nil {
		e.state.discard()
	}
	for _, c := range e.callers {
		c.receiver.Close()
	}
	e.callers = nil
	for i, in := range e.inlets { // nobody polls any more
		if in != nil && in.ring != nil {
			in.receiver.Close()
			e.inlets[i].ring = nil
		}
	}
	for _, o := range e.outlets {
		if o != nil && o.ring != nil {
			o.sender.Close()
			o.ring = nil
		}
	}
}

// tickInterval is how long acknowledgements may be held back. Short against
// the time in which a sender fills its share of flowLimit.
const tickInterval = 10 * time.Millisecond

// armTick sees to it that the protocol is told of the passing of time while it
// may owe acknowledgements: once after whatever arrived, and again as long as
// that makes it send something. e.mu is held.
func (e *Engine) armTick() {
	if e.ticking || e.err != nil {
		return
	}
	e.ticking = true
	e.running.Add(1)
	if e.tick == nil {
		e.tick = time.AfterFunc(tickInterval, e.onTick)
	} else {
		e.tick.Reset(tickInterval)
	}
}

func (e *Engine) onTick() {
	defer e.running.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ticking = false
	if e.err != nil {
		return
	}
	if e.protocol == nil {
		e.acknowledgeDue()
		return
	}
	out := e.protocol.Tick()
	e.goOn()
	if len(out.Send) > 0 || len(e.postponed) > 0 {
		e.armTick()
	}
	e.apply(out)
	e.relieve()
	e.keepPace()
	e.reviewStall()
}
