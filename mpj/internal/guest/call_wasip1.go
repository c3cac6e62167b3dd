package guest

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// pending is the code of a call that the host makes in the background.
const pending = -1

// A host is this module's access to its host. It makes the module's calls in the background if other goroutines
// may run meanwhile.
type host struct {
	parent context.Context // argument of Join; its end explains errors
	shared bool            // parent can end, so calls must not block the module

	mu      sync.Mutex
	last    uint32              // latest ticket
	waiting map[uint32]*waiting // by ticket
	polling bool                // a goroutine is polling the host
}

type waiting struct {
	done bool
	code int32
	text string        // text of the error
	wake chan struct{} // capacity 1: signals that the call is done, or that no goroutine polls the host
}

// An event is the host's report of a completed call.
type event struct {
	ticket uint32
	code   int32
}

// alone reports whether calls may block in the host, because no other goroutine exists and the
// context of Join cannot end.
func (h *host) alone() bool { return !h.shared && runtime.NumGoroutine() == 1 }

// call makes a call of the host that may block, and returns its code and its error text.
func (h *host) call(f func(later uint32) int32) (int32, string) {
	if h.alone() {
		code := f(0)
		return code, textOf(code)
	}
	return h.callInBackground(f, nil)
}

// callInBackground makes a call in the background. It calls begun with the ticket.
func (h *host) callInBackground(f func(later uint32) int32, begun func(ticket uint32)) (int32, string) {
	h.mu.Lock()
	h.last++
	if h.last == 0 {
		h.last++
	}
	ticket := h.last
	w := &waiting{wake: make(chan struct{}, 1)}
	h.waiting[ticket] = w
	h.mu.Unlock()
	if code := f(ticket); code != pending {
		panic("p2pmpi: the host did not run a call in the background")
	}
	if begun != nil {
		begun(ticket)
	}
	h.await(w)
	runtime.KeepAlive(f) // keeps the buffers that only the host knows from being collected
	return w.code, w.text
}

// callUntil makes a call that gives up when ctx ends.
func (h *host) callUntil(ctx context.Context, f func(later uint32) int32) (int32, string) {
	stop := func() bool { return true }
	defer func() { stop() }()
	return h.callInBackground(f, func(ticket uint32) {
		stop = context.AfterFunc(ctx, func() { hostGiveUp(ticket) })
	})
}

// await returns when w is done. One of the waiting goroutines polls the host; when its own call is
// done, it hands over to another.
func (h *host) await(w *waiting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !w.done {
		if h.polling {
			h.mu.Unlock()
			<-w.wake
			h.mu.Lock()
			continue
		}
		h.polling = true
		h.poll(w)
		h.polling = false
	}
	for _, other := range h.waiting {
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

// poll polls the host until w is done. The caller holds h.mu; poll releases it while other
// goroutines run.
func (h *host) poll(w *waiting) {
	timeout, looks := shortest, 0
	for !w.done {
		h.mu.Unlock()
		runtime.Gosched()
		h.mu.Lock()
		var this time.Duration
		switch {
		case len(h.waiting) >= runtime.NumGoroutine():
			this = allWait
		case looks >= firstLooks:
			this = timeout
			timeout = min(timeoutGrowth*timeout, longest)
		}
		looks++
		if h.next(this) {
			timeout, looks = shortest, 0
		}
	}
}

// next takes a completed call, if one completes within timeout.
func (h *host) next(timeout time.Duration) bool {
	var v event
	if hostNext(int64(timeout), unsafe.Pointer(&v)) == 0 {
		return false
	}
	w := h.waiting[v.ticket]
	if w == nil {
		return true
	}
	delete(h.waiting, v.ticket)
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
