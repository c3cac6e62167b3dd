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

// ErrExpelled is the error of an engine whose process was removed from the view. Other processes no
// longer accept the results of that process (R5).
var ErrExpelled = errors.New("this process was removed from the job's view")

// A Config holds the parameters and callbacks of an engine.
type Config struct {
	Self view.Process
	View view.View
	// Protocol protects the process; nil when there are no replicas.
	Protocol protection.Protocol
	Opener   channel.Opener
	// Bell is the bell on which this process sleeps while it waits for rings; nil when it has no
	// rings.
	Bell Bell
	// Crowded reports whether the job has more processes on this machine than there are processors.
	Crowded bool
	// Clock returns the time since an arbitrary moment in the past, for Wtime.
	Clock func() time.Duration
	// Diverged is called with the protocol's reports of messages that differ between replicas, at
	// most maxDiverged times. It may block.
	Diverged func(protection.Divergence)
	// Log is the message log of this process, for replicas that join its rank later; nil if no
	// replica will join. The engine closes it. The engine calls LogDropped with the reason when the
	// log is dropped, permanently or until the program's next checkpoint. Of the drops that last
	// until a checkpoint, it reports only the first. LogDropped may block.
	Log        *MessageLog
	LogDropped func(why string, permanent bool)
	// Joined is called, if this process is new in a running rank, once it has caught up with the
	// rank. Its arguments are the number of replayed messages and their bytes. Joined may block.
	Joined func(messages, bytes uint64)
	// Ahead is called occasionally while the process is ahead of its rank's master. It may block.
	Ahead func()
	// Stalled is called occasionally while the rank waits for other replicas to receive an outcome.
	// It may block.
	Stalled func()
	// UpToDate is called while this process is set aside, with the master's statement that the
	// process lacks nothing. With that statement the process may count again. UpToDate may block.
	UpToDate func(protection.UpToDate)
}

// An Engine is the engine of one process. Several goroutines may call its methods, but only one at
// a time may make a call whose outcome depends on timing.
type Engine struct {
	self       view.Process
	opener     channel.Opener
	clock      func() time.Duration
	tell       func(protection.Divergence)
	log        *MessageLog // may be nil
	logDropped func(why string, permanent bool)
	joined     func(messages, bytes uint64) // nil once called
	state      *draft                       // received part of the checkpoint that this process resumes from
	ahead      func()
	upToDate   func(protection.UpToDate)
	onStall    func()
	stall      stall

	ctx     context.Context // context of all blocking operations; ends with the engine
	cancel  context.CancelFunc
	stopped chan struct{}  // closed when err is set
	running sync.WaitGroup // readers, writers, the pump, the tick and callbacks

	mu        sync.Mutex
	err       error // reason why the engine has stopped; nil while it runs
	view      view.View
	protocol  protection.Protocol // nil without replicas: see direct.go
	decider   bool                // last result of protocol.Decider
	mailboxes map[uint32]*mailbox
	last      uint32 // context of lastBox, the mailbox used last
	lastBox   *mailbox
	open      map[protection.Point]*decision // undecided points that the program has reached
	early     map[protection.Point][]byte    // outcomes of points that the program has not reached

	applying   bool // apply is processing the next two fields
	deliveries []protection.Message
	outcomes   []protection.Determinant

	outlets       []*outlet // by process: rank*r + replica
	inlets        []*inlet
	earlyChannels []earlyChannel // channels from processes that are not yet in the view
	poller        poller
	loans         int // number of lent inlets
	sleepers      []*waiter
	sleeps        uint64     // number of sleeps so far
	requests      []*Request // free requests, for reuse
	waiters       []*waiter
	shorts        [][]byte
	shortsMade    int            // number of buffers that room has made
	queued        int            // bytes in outlets
	writes        int            // rank whose channels the goroutine that holds mu will write to, or noRank
	stalled       []*heldSend    // sends in held that wait for the load to fall
	sent          Request        // the request of every send that ended at once
	flush         *waiter        // waiter of Flush, or nil
	unreached     []view.Process // processes that have not answered askReached, during Flush
	tick          *time.Timer
	ticking       bool

	// With a protocol:
	credits     credits
	flows       []flow                       // by rank
	logComplete bool                         // this process is not new, or has its rank's complete message log
	held        map[messageID]*heldSend      // sends that have started but not ended
	receipts    map[messageID]struct{}       // receipts for synchronous sends that this process has yet to make
	asked       map[messageID][]view.Process // processes that must get a Receipt when a message has been matched
	// lent counts the users of a payload that a send has copied, if its memory will be reused. The
	// users are the protocol and the queues that contain the payload.
	lent map[*byte]int

	postponed      []protection.Envelope // LogRequest frames held back until the program has received more
	unmatchedBytes int                   // unmatched bytes at the last tick

	replayed, replayedBytes uint64 // messages and bytes of the rank's log that were replayed to this process

	resuming *waiter // waiter of Checkpoint while it waits for an arriving checkpoint

	diverged int // number of calls of tell
	telling  int // number of calls of tell that have not returned

	// Without a protocol:
	bodies      int    // payloads that wait for their receive or are being transferred
	finished    []bool // by rank: whether it sends no more messages
	anyFinished bool
	undrained   bool // rings may still hold messages of finished ranks

	ending    bool // Flush has begun, so the program receives no more messages
	refused   []Unmatched
	selfSeq   uint64 // number of messages of this process to itself
	selfBytes int    // unmatched bytes of these messages

	toleratedHang time.Duration // silence that the job tolerates (SetToleratedHang)

	pace pace

	clockOffset float64 // seconds to add to clock to continue the last decider's time
	time        float64 // last outcome of Wtime
}

// New returns the engine of a process. When ctx ends, the engine stops and all calls fail. The
// caller must always call Close.
func New(ctx context.Context, c Config) *Engine {
	e := &Engine{
		self: c.Self, opener: c.Opener, clock: c.Clock, tell: c.Diverged, log: c.Log, logDropped: c.LogDropped,
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
		held:      make(map[messageID]*heldSend),
		receipts:  make(map[messageID]struct{}),
		asked:     make(map[messageID][]view.Process),
		lent:      make(map[*byte]int),
		writes:    noRank,
		pace:      newPace(),
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.mu.Lock()
	if e.protocol != nil {
		if e.logComplete = !e.protocol.Joining(); !e.logComplete {
			e.joined = c.Joined
		}
		e.newFlows(!e.logComplete)
		e.armTick() // the view may already name this process as master
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

// View installs a newer view of the job and ignores older ones.
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
	e.acceptEarly()
	for _, o := range e.outlets {
		if o != nil && !v.Live(o.to) {
			e.drop(o)
		}
	}
	for _, in := range e.inlets { // a borrower may need to read another inlet
		if in != nil && in.loan != nil && in.loan.borrowed {
			in.loan.borrower.wake()
		}
	}
	if e.protocol == nil {
		e.recordFinished()
		return
	}
	if rank := e.self.Rank; v.Since[rank] != before.Since[rank] {
		e.pace.moved(before.IsMaster(e.self))
	}
	e.addFlows(before)
	e.apply(e.protocol.View(v))
	e.queryAll(noRank)
	e.relieve()
	e.armTick()
	e.recordFinished()
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

// apply carries out an output of the protocol. Deliveries and outcomes may cause further calls of
// the protocol. So apply copies the deliveries and outcomes first, and only the outermost call of
// apply processes them. e.mu is held.
func (e *Engine) apply(out protection.Output) {
	if out.Lost != "" {
		e.fail(errors.New(out.Lost))
		return
	}
	if e.decider && !e.protocol.Decider() {
		e.stepDown()
	}
	for _, envelope := range out.Send {
		if envelope.Frame.Kind == frame.LogRequest && e.hasEnough() {
			e.postponed = append(e.postponed, envelope)
			continue
		}
		e.hold(envelope.Frame.Payload)
		e.enqueue(envelope)
	}
	for _, payload := range out.Released {
		e.releasePayload(payload)
	}
	for _, d := range out.Diverged {
		e.tellDiverged(d)
	}
	for _, r := range out.LogRequests {
		e.sendLogPiece(r)
	}
	if out.UpToDate != (protection.UpToDate{}) && e.upToDate != nil {
		e.running.Go(func() { e.upToDate(out.UpToDate) }) // until the call returns
	}
	if len(out.State) > 0 {
		e.takeState(out.State)
	}
	e.logReceived(out)
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
	if !e.logComplete && e.protocol.LogComplete() {
		e.markLogComplete()
	}
	if e.joined != nil && !e.protocol.Joining() {
		e.tellJoined()
	}
}

// mailbox returns the mailbox of context, and creates it if necessary.
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

// Fail stops the engine: every waiting call and every later call returns err. Later calls of Fail
// have no effect.
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
	e.log.close()
	if e.state != nil {
		e.state.discard()
	}
	for _, c := range e.earlyChannels {
		c.receiver.Close()
	}
	e.earlyChannels = nil
	for i, in := range e.inlets { // no goroutine polls the rings any more
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

// tickInterval is the longest delay of acknowledgements. It is short compared with the time in which
// a sender fills its share of flowLimit.
const tickInterval = 10 * time.Millisecond

// armTick schedules a tick, at which the protocol sends delayed acknowledgements. The engine calls
// armTick after each arrival, and again while a tick makes the protocol send frames or while other
// work waits for a tick. e.mu is held.
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
	e.requestMoreLog()
	if len(out.Send) > 0 || len(e.postponed) > 0 {
		e.armTick()
	}
	e.apply(out)
	e.relieve()
	e.keepPace()
	e.reviewStall()
}
