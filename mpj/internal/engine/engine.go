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

	conns     connections
	direct    direct // transport without a protocol
	payloads  payloadPool
	spares    spares
	stalled   []*heldSend    // sends in held that wait for the load to fall
	flush     *waiter        // waiter of Flush, or nil
	unreached []view.Process // processes that have not answered askReached, during Flush
	tick      ticker
	finished  finalized

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

	ending bool // Flush has begun, so the program receives no more messages

	pace pace

	clockOffset float64 // seconds to add to clock to continue the last decider's time
	time        float64 // last outcome of Wtime
}

// New returns the engine of a process. When ctx ends, the engine stops and all calls fail. The
// caller must always call Close.
func New(ctx context.Context, c Config) *Engine {
	e := &Engine{
		self: c.Self, clock: c.Clock, tell: c.Diverged, log: c.Log, logDropped: c.LogDropped,
		ahead:    c.Ahead,
		upToDate: c.UpToDate, onStall: c.Stalled,
		view:      c.View,
		protocol:  c.Protocol,
		decider:   c.Protocol == nil || c.Protocol.Decider(),
		mailboxes: make(map[uint32]*mailbox),
		open:      make(map[protection.Point]*decision),
		early:     make(map[protection.Point][]byte),
		spares:    spares{sent: Request{done: true}},
		held:      make(map[messageID]*heldSend),
		receipts:  make(map[messageID]struct{}),
		asked:     make(map[messageID][]view.Process),
		lent:      make(map[*byte]int),
		pace:      newPace(),
	}
	e.conns = newConnections(e, c)
	e.tick.onTick, e.tick.running = e.onTick, &e.running
	e.direct.e, e.direct.rank = e, c.Self.Rank
	if c.Protocol == nil {
		e.direct.inflows = make([]*inflow, c.View.N)
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
		e.running.Go(func() { e.conns.poller.pump(e.ctx.Done()) }) // until the engine stops
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
	e.conns.grow(v)
	before := e.view
	if e.view = v; v.State(e.self) == view.Failed {
		e.fail(ErrExpelled)
		return
	}
	e.conns.follow(v)
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

func (e *Engine) deliver(m protection.Message) {
	b := e.mailbox(m.Context)
	if b.abandoned {
		e.takeUnreceived(message{Message: m})
		return
	}
	if r, m, ok := b.arrive(m, e.decider); ok {
		e.matched(r, m)
	} else if e.ending {
		e.dropUnreceived(&b.unexpected[len(b.unexpected)-1])
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

// matched completes r with m. For a wildcard whose outcome is not decided, it proposes m instead.
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
	e.cancel()
	e.conns.stop()
	e.tick.stop()
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
	e.conns.close()
}

// tickInterval is the longest delay of acknowledgements. It is short compared with the time in which
// a sender fills its share of flowLimit.
const tickInterval = 10 * time.Millisecond

// armTick schedules a tick, at which the protocol sends delayed acknowledgements. The engine calls
// armTick after each arrival, and again while a tick makes the protocol send frames or while other
// work waits for a tick. e.mu is held.
func (e *Engine) armTick() {
	if e.err == nil {
		e.tick.arm(tickInterval)
	}
}

func (e *Engine) onTick() {
	defer e.running.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tick.armed = false
	if e.err != nil {
		return
	}
	if e.protocol == nil {
		e.direct.acknowledgeDue()
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
