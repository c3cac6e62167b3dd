package guest

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// pending is the code of a call that the host makes beside the module.
const pending = -1

// calls are those that the host makes beside the module.
type calls struct {
	mu      sync.Mutex
	last    uint32
	waiting map[uint32]*waiting // by ticket
	polling bool                // one goroutine asks the host
}

type waiting struct {
	done bool
	code int32
	text string        // of the error
	wake chan struct{} // of capacity 1: it is done, or nobody asks the host
}

// An event is what the host says of a call that is done.
type event struct {
	ticket uint32
	code   int32
}

// alone reports whether calls may block in the host: nobody else wants to run.
func (e *Engine) alone() bool { return !e.shared && runtime.NumGoroutine() == 1 }

// call makes a call of the host that may block, and returns its code and the text of
// its error.
func (e *Engine) call(f func(later uint32) int32) (int32, string) {
	if e.alone() {
		code := f(0)
		return code, textOf(code)
	}
	return e.callBeside(f, nil)
}

// callBeside makes the call beside the module. begun is told its ticket.
func (e *Engine) callBeside(f func(later uint32) int32, begun func(ticket uint32)) (int32, string) {
	c := &e.calls
	c.mu.Lock()
	c.last++
	if c.last == 0 {
		c.last++
	}
	ticket := c.last
	w := &waiting{wake: make(chan struct{}, 1)}
	c.waiting[ticket] = w
	c.mu.Unlock()
	if code := f(ticket); code != pending {
		panic("p2pmpi: the host has not made a call beside the module")
	}
	if begun != nil {
		begun(ticket)
	}
	c.await(w)
	runtime.KeepAlive(f) // and so the buffers that only the host has known of since
	return w.code, w.text
}

// await returns when w is done. Of those who wait, one asks the host, and when its own
// call is done, leaves that to another.
func (c *calls) await(w *waiting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !w.done {
		if c.polling {
			c.mu.Unlock()
			<-w.wake
			c.mu.Lock()
			continue
		}
		c.polling = true
		c.poll(w)
		c.polling = false
	}
	for _, other := range c.waiting {
		other.rouse()
		return
	}
}

// Patience is how long the host waits for a call to be done while other goroutines may
// want to run: nothing at first, then ever longer. If all wait for the host, only timers
// are to be looked after.
const (
	firstLooks   = 16
	shortest     = 20 * time.Microsecond
	longest      = time.Millisecond
	allWait      = 20 * time.Millisecond
	patienceOver = 2 // by how much it grows
)

// poll asks the host until w is done. c.mu is held, but not while others run.
func (c *calls) poll(w *waiting) {
	patience, looks := shortest, 0
	for !w.done {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		var this time.Duration
		switch {
		case len(c.waiting) >= runtime.NumGoroutine():
			this = allWait
		case looks >= firstLooks:
			this = patience
			patience = min(patienceOver*patience, longest)
		}
		looks++
		if c.next(this) {
			patience, looks = shortest, 0
		}
	}
}

// next takes a call that is done, if one is in time.
func (c *calls) next(patience time.Duration) bool {
	var v event
	if hostNext(int64(patience), unsafe.Pointer(&v)) == 0 {
		return false
	}
	w := c.waiting[v.ticket]
	if w == nil {
		return true
	}
	delete(c.waiting, v.ticket)
	w.done, w.code, w.text = true, v.code, textOf(v.code)
	w.rouse()
	return true
}

func (w *waiting) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
