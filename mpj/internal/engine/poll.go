package engine

import (
	"slices"
	"sync"
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

// A ringReceiver is the receiving end of a channel in shared memory. It never blocks, so a goroutine
// of the engine must poll it.
type ringReceiver interface {
	Ready() bool
	Arrived() bool // like Ready, but does not detect the end; a single load
	TryReceive(alloc func(frame.Header) []byte) (frame.Frame, bool, error)
}

// A RingSender is the sending end of such a channel.
type RingSender interface {
	TrySend(frame.Frame) (done bool, err error)
}

// A MemorySender is a ring whose receiver may read the payloads of this process.
type MemorySender interface {
	Address(payload []byte) uint64
}

// A MemoryReader is the receiving end of a MemorySender.
type MemoryReader interface {
	CanRead() bool
	ReadMemory(address uint64, b []byte) error
}

// A poller makes progress on rings and lets the goroutines of the program sleep. It hides which
// goroutine polls, and for how long, the bell, and the sleeping goroutines. It needs from the
// engine: the mutex, which guards it, and the number of pending payloads (bodies). It also needs
// arrived and lost of an inlet, and push of an outlet, which process what the
// poller finds. It is in one of three states, which differ in the goroutine that polls:
//
//	spinning   a goroutine of the program that waits in a call: the fast case,
//	           without system calls; see spin.go
//	watching   the pump, which sleeps at the bell: all waiting goroutines have
//	           spun for long enough, or the program computes
//	resting    no goroutine: the program is between two calls. If it makes no
//	           call within restTime, the pump watches.
type poller struct {
	mu      *sync.Mutex // the engine's
	bell    Bell
	crowded bool // more processes than processors, so spinning delays other processes
	stopped bool // the engine has stopped

	inlets  []*inlet // inlets with rings; replaced, never modified
	next    int      // start of the next pass, so that no inlet is always first
	pushing []*Outlet
	fetches []func() (done bool) // payloads that are read from other processes, piece by piece
	lent    []*inlet             // inlets that are lent to the program: see lend.go
	bodies  int                  // payloads that wait for their receive or are being transferred

	sleepers []*Waiter // goroutines of the program that sleep
	sleeps   uint64    // number of sleeps so far

	polls    uint64 // number of passes so far
	spinning bool
	slow     int     // number of waits that should not yield, because a yield was slow
	awaited  *Waiter // waiter of the goroutine that spins
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

// leave makes the pump continue the transfers that the program leaves pending. Every call that
// returns to the program while transfers may be pending ends with leave. p.mu is held.
func (p *poller) leave() {
	if len(p.pushing) > 0 || p.bodies > 0 || len(p.sleepers) > 0 {
		p.watch()
		p.recallAll()
	}
}

// progress takes the frames from the rings, fills rings that have room, and reports whether it
// moved any. It never blocks. p.mu is held.
func (p *poller) progress() (moved bool) {
	p.polls++
	p.recallAll()
	for range p.inlets {
		if p.next++; p.next >= len(p.inlets) {
			p.next = 0
		}
		if in := p.inlets[p.next]; in.ring.Ready() {
			p.drain(in)
			moved = true
		}
		if p.stopped {
			return moved
		}
	}
	if len(p.pushing) > 0 {
		moved = p.pushAll() || moved
	}
	if len(p.fetches) > 0 && !p.stopped {
		if p.fetches[0]() {
			p.fetches = append(p.fetches[:0], p.fetches[1:]...)
		}
		moved = true
	}
	return moved
}

// advance makes progress, unless a goroutine spins: that goroutine makes progress itself, and polls
// the rings without the engine's mutex. p.mu is held.
func (p *poller) advance() {
	if !p.spinning {
		p.progress()
	}
}

// drainMost bounds the frames of one pass, so that no ring waits long for the others.
const drainMost = 32

// drain takes frames from a ring.
func (p *poller) drain(in *inlet) {
	for range drainMost {
		var ok bool
		var err error
		in.frame, ok, err = in.ring.TryReceive(in.alloc)
		if err != nil {
			p.removeRing(in)
			in.lost(err)
			return
		}
		if !ok || !in.arrived() || p.awaited != nil && p.awaited.woken.Load() {
			return
		}
	}
}

// pushAll fills the rings of the outlets with queued frames.
func (p *poller) pushAll() (moved bool) {
	left := p.pushing[:0]
	for _, o := range p.pushing {
		before := len(o.queue)
		o.push()
		moved = moved || len(o.queue) < before
		if o.pushing = len(o.queue) > 0 && !o.dropped; o.pushing {
			left = append(left, o)
		}
	}
	clear(p.pushing[len(left):])
	p.pushing = left
	return moved
}

// pushLater makes progress push the frames that are left in the queue of o.
func (p *poller) pushLater(o *Outlet) {
	if len(o.queue) > 0 && !o.pushing {
		o.pushing = true
		p.pushing = append(p.pushing, o)
	}
}

// addRing begins to poll the ring of an inlet. p.mu is held.
func (p *poller) addRing(in *inlet) {
	p.inlets = append(p.inlets[:len(p.inlets):len(p.inlets)], in)
	p.wakeSleepers()
	p.awaited.Wake()
	p.rest()
	p.watch()
}

// removeRing stops polling the ring of an inlet.
func (p *poller) removeRing(in *inlet) {
	kept := make([]*inlet, 0, len(p.inlets))
	for _, other := range p.inlets {
		if other != in {
			kept = append(kept, other)
		}
	}
	p.inlets = kept
}

// stop ends all waits, because the engine has stopped. p.mu is held.
func (p *poller) stop() {
	p.stopped = true
	p.wakeSleepers()
	p.awaited.Wake()
	if p.bell != nil {
		p.bell.Disarm()
	}
}

// sleep returns when w has been woken. The pump polls meanwhile. p.mu is held at the beginning and
// the end. A goroutine that wakes w also holds p.mu.
func (p *poller) sleep(w *Waiter) {
	p.number(w)
	p.sleepers = append(p.sleepers, w)
	p.watch()
	p.recallAll()
	p.mu.Unlock()
	<-w.changed
	p.mu.Lock()
	w.stale = false
	i := slices.Index(p.sleepers, w)
	p.sleepers = slices.Delete(p.sleepers, i, i+1)
}

// number gives the next sleep, which is that of w, its number.
func (p *poller) number(w *Waiter) {
	p.sleeps++
	w.number = p.sleeps
}

func (p *poller) wakeSleepers() {
	for _, w := range p.sleepers {
		w.Wake()
	}
}

// waits reports whether a goroutine of the program waits in a call, or has waited until recently.
func (p *poller) waits() bool { return len(p.sleepers) > 0 || p.spinning || len(p.lent) > 0 }

// unattended reports whether only the pump makes progress, because the program makes no call.
func (p *poller) unattended() bool { return p.pumping && !p.spinning && len(p.sleepers) == 0 }

// asleep returns the waiters of the goroutines that sleep. It returns false if another goroutine
// spins.
func (p *poller) asleep() (all []*Waiter, known bool) {
	all = slices.Clone(p.sleepers)
	if p.dozing {
		all = append(all, p.awaited)
	}
	for _, in := range p.lent {
		if in.loan.borrowed {
			all = append(all, in.loan.borrower)
		}
	}
	return all, !p.spinning || p.dozing
}
