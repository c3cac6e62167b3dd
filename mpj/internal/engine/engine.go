package engine

import (
	"context"
	"errors"
	"sync"
	"time"

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
	// Transport returns the transport of the engine. The engine's mutex is held.
	Transport func(Loop) Transport
	Opener    channel.Opener
	// Bell is the bell on which this process sleeps while it waits for rings; nil when it has no
	// rings.
	Bell Bell
	// Crowded reports whether the job has more processes on this machine than there are processors.
	Crowded bool
	// Clock returns the time since an arbitrary moment in the past, for Wtime.
	Clock func() time.Duration
}

// An Engine is the engine of one process. Several goroutines may call its methods, but only one at
// a time may make a call whose outcome depends on timing.
type Engine struct {
	self  view.Process
	clock func() time.Duration

	ctx     context.Context // context of all blocking operations; ends with the engine
	cancel  context.CancelFunc
	running sync.WaitGroup // readers, writers, the pump, the tick and callbacks

	mu        sync.Mutex
	err       error // reason why the engine has stopped; nil while it runs
	view      view.View
	transport Transport
	mailboxes map[uint32]*Mailbox
	last      uint32 // context of lastBox, the mailbox used last
	lastBox   *Mailbox

	conns    connections
	payloads payloadPool
	spares   spares
	flush    *Waiter // waiter of Flush, or nil
	tick     ticker
	finished finalized
}

// New returns the engine of a process. When ctx ends, the engine stops and all calls fail. The
// caller must always call Close.
func New(ctx context.Context, c Config) *Engine {
	e := &Engine{
		self: c.Self, clock: c.Clock,
		view:      c.View,
		mailboxes: make(map[uint32]*Mailbox),
		spares:    spares{sent: Request{done: true}},
	}
	e.conns = newConnections(e, c)
	e.tick.onTick, e.tick.running = e.onTick, &e.running
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.mu.Lock()
	e.transport = c.Transport(Loop{e})
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
	e.transport.View(before)
	e.recordFinished()
}

// mailbox returns the mailbox of context, and creates it if necessary.
func (e *Engine) mailbox(context uint32) *Mailbox {
	if e.last == context && e.lastBox != nil {
		return e.lastBox
	}
	b := e.mailboxes[context]
	if b == nil {
		b = new(Mailbox)
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
	e.cancel()
	e.conns.stop()
	e.tick.stop()
}

// Close stops the engine and returns when all its goroutines have ended.
func (e *Engine) Close() {
	e.Fail(ErrClosed)
	e.running.Wait()
	e.transport.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns.close()
}

// tickInterval is the longest delay of acknowledgements. It is short compared with the time in which
// a sender fills its share of flowLimit.
const tickInterval = 10 * time.Millisecond

// armTick schedules a tick, at which the transport sends delayed acknowledgements. The transport
// calls armTick after each arrival, and again while a tick makes it send frames or while other work
// waits for a tick. e.mu is held.
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
	e.transport.Tick()
}

// Transport returns the transport of e.
func (e *Engine) Transport() Transport { return e.transport }
