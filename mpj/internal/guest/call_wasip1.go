package guest

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// pending is the code of a call that the host makes in the background.
const pending = -1

// calls holds the calls that the host makes in the background.
type calls struct {
	mu      sync.Mutex
	last    uint32
	waiting map[uint32]*waiting // by ticket
	polling bool                // a goroutine is polling the host
}

type waiting struct {
	done bool
	code int32
	text string        // error text
	wake chan struct{} // capacity 1: signals that the call is done, or that no goroutine polls the host
}

// An event is the host's report of a completed call.
type event struct {
	ticket uint32
	code   int32
}

// alone reports whether calls may block in the host, because no other goroutine exists and the
// context of Join cannot end.
func (e *Engine) alone() bool { return !e.shared && runtime.NumGoroutine() == 1 }

// call makes a call of the host that may block, and returns its code and its error text.
func (e *Engine) call(f func(later uint32) int32) (int32, string) {
	if e.alone() {
		code := f(0)
		return code, textOf(code)
	}
	return e.callInBackground(f, nil)
}

// callInBackground makes a call in the background. It calls begun with the ticket.
func (e *Engine) callInBackground(f func(later uint32) int32, begun func(ticket uint32)) (int32, string) {
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
		panic("p2pmpi: the host did not run a call in the background")
	}
	if begun != nil {
		begun(ticket)
	}
	c.await(w)
	runtime.KeepAlive(f) // keeps the buffers that only the host knows from being collected
	return w.code, w.text
}

// await returns when w is done. One of the waiting goroutines polls the host; when its own call is
// done, it hands over to another.
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
		other.notify()
		return
	}
}

// The timeout of a poll bounds how long the host waits for a call to complete. While other
// goroutines may want to run, it is zero at first, and then grows. If all goroutines wait for the
// host, only timers need attention.
const (
	firstLooks    = 16
	shortest      = 20 * time.Microsecond
	longest       = time.Millisecond
	allWait       = 20 * time.Millisecond
	timeoutGrowth = 2 // growth factor
)

// poll polls the host until w is done. The caller holds c.mu; poll releases it while other
// goroutines run.
func (c *calls) poll(w *waiting) {
	timeout, looks := shortest, 0
	for !w.done {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		var this time.Duration
		switch {
		case len(c.waiting) >= runtime.NumGoroutine():
			this = allWait
		case looks >= firstLooks:
			this = timeout
			timeout = min(timeoutGrowth*timeout, longest)
		}
		looks++
		if c.next(this) {
			timeout, looks = shortest, 0
		}
	}
}

// next takes a completed call, if one completes within timeout.
func (c *calls) next(timeout time.Duration) bool {
	var v event
	if hostNext(int64(timeout), unsafe.Pointer(&v)) == 0 {
		return false
	}
	w := c.waiting[v.ticket]
	if w == nil {
		return true
	}
	delete(c.waiting, v.ticket)
	w.done, w.code, w.text = true, v.code, textOf(v.code)
	w.notify()
	return true
}

func (w *waiting) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
