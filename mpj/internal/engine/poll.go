package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A Bell lets this process sleep until another process has put data into one of its rings, or made
// room in one: see channel.Bell.
type Bell interface {
	Arm()    // other processes must ring from now on
	Sleep()  // until rung or disarmed
	Disarm() // other processes need not ring; ends Sleep
}

// A ring is an end of a channel in shared memory. It never blocks, so a goroutine of the engine must
// poll it.
type (
	ringReceiver interface {
		Ready() bool
		Arrived() bool // like Ready, but does not detect the end; a single load
		TryReceive(alloc func(frame.Header) []byte) (frame.Frame, bool, error)
	}
	ringSender interface {
		TrySend(frame.Frame) (done bool, err error)
	}
)

// A poller is the engine's state about its rings. It is in one of three states, which differ in the
// goroutine that polls:
//
//	spinning   a goroutine of the program that waits in a call: the fast case,
//	           without system calls; see spin.go
//	watching   the pump, which sleeps at the bell: all waiting goroutines have
//	           spun for long enough, or the program computes
//	resting    no goroutine: the program is between two calls. If it makes no
//	           call within restTime, the pump watches.
type poller struct {
	bell    Bell
	crowded bool // more processes than processors, so spinning delays other processes

	inlets   []*inlet // inlets with rings; replaced, never modified
	next     int      // start of the next pass, so that no inlet is always first
	pushing  []*outlet
	fetches  []*fetch
	polls    uint64 // number of passes so far
	spinning bool
	slow     int     // number of waits that should not yield, because a yield was slow
	awaited  *waiter // waiter of the goroutine that spins
	watching bool
	pumping  bool          // the pump is at the bell, or has not left it yet
	dozing   bool          // the goroutine that spins sleeps at the bell
	kick     chan struct{} // has capacity 1; signals a change of watching
}

// restTime is the time that the program may spend outside calls of the engine before the pump
// watches.
const restTime = time.Millisecond

// free reports whether the caller may spin: there are rings, and no goroutine spins.
func (p *poller) free() bool {
	return !p.spinning && (len(p.inlets) > 0 || len(p.pushing) > 0)
}

// watch makes the pump watch the rings if no goroutine polls them.
func (p *poller) watch() {
	if p.bell == nil || p.spinning || p.watching {
		return
	}
	p.watching = true
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// rest tells the pump that it need not watch.
func (p *poller) rest() {
	if p.watching {
		p.watching = false
		p.bell.Disarm()
	}
}

// leave makes the pump continue the transfers that the program leaves pending. e.mu is held.
func (e *Engine) leave() {
	if len(e.poller.pushing) > 0 || e.direct.bodies > 0 || len(e.sleepers) > 0 {
		e.poller.watch()
		e.recallAll()
	}
}

// progress takes the frames from the rings, fills rings that have room, and reports whether it
// moved any. It never blocks. e.mu is held.
func (e *Engine) progress() (moved bool) {
	p := &e.poller
	p.polls++
	e.recallAll()
	for range p.inlets {
		if p.next++; p.next >= len(p.inlets) {
			p.next = 0
		}
		if in := p.inlets[p.next]; in.ring.Ready() {
			e.drain(in)
			moved = true
		}
		if e.err != nil {
			return moved
		}
	}
	if len(p.pushing) > 0 {
		moved = e.pushAll() || moved
	}
	if len(p.fetches) > 0 && e.err == nil {
		e.direct.fetchOne()
		moved = true
	}
	return moved
}

// advance makes progress, unless a goroutine spins: that goroutine makes progress itself, and polls
// the rings without the engine's mutex. e.mu is held.
func (e *Engine) advance() {
	if !e.poller.spinning {
		e.progress()
	}
}

// drainMost bounds the frames of one pass, so that no ring waits long for the others.
const drainMost = 32

// drain takes frames from a ring.
func (e *Engine) drain(in *inlet) {
	for range drainMost {
		f, ok, err := in.ring.TryReceive(in.alloc)
		if err != nil {
			e.closeRing(in, err)
			return
		}
		if !ok || !e.arrived(in, &f) || e.poller.awaited != nil && e.poller.awaited.woken.Load() {
			return
		}
	}
}

// pushAll fills the rings of the outlets with queued frames.
func (e *Engine) pushAll() (moved bool) {
	p := &e.poller
	left := p.pushing[:0]
	for _, o := range p.pushing {
		before := len(o.queue)
		e.push(o)
		moved = moved || len(o.queue) < before
		if o.pushing = len(o.queue) > 0 && !o.dropped; o.pushing {
			left = append(left, o)
		}
	}
	clear(p.pushing[len(left):])
	p.pushing = left
	return moved
}

// addRing begins to poll the ring of an inlet. e.mu is held.
func (e *Engine) addRing(in *inlet) {
	p := &e.poller
	p.inlets = append(p.inlets[:len(p.inlets):len(p.inlets)], in)
	for _, w := range e.sleepers {
		w.wake()
	}
	p.awaited.wake()
	p.rest()
	p.watch()
}

// closeRing closes a ring whose sender has closed it or violated the protocol.
func (e *Engine) closeRing(in *inlet, err error) {
	p := &e.poller
	kept := make([]*inlet, 0, len(p.inlets))
	for _, other := range p.inlets {
		if other != in {
			kept = append(kept, other)
		}
	}
	p.inlets = kept
	in.receiver.Close()
	if !isEnd(err) && e.view.Live(in.from) {
		e.fail(protocolError(in.from, err))
	}
}
