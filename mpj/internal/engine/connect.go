package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// reopenFirst and reopenMost bound the delays before a channel is opened again: the first delay,
// and the limit of its doubling. After a channel that lived longer than reopenMost, the delays
// start from the beginning.
const (
	reopenFirst = 5 * time.Millisecond
	reopenMost  = 500 * time.Millisecond
)

// SetToleratedHang sets the time for which the job tolerates a silent peer. A link may be down for
// that long while a channel is being opened.
func (e *Engine) SetToleratedHang(silence time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns.toleratedHang = silence
}

// connect opens the channel of o, and retries until it succeeds. It returns false if o is dropped
// first. e.mu is held, but not while the channel is being opened.
func (o *Outlet) connect() bool {
	e := o.e
	start := time.Now()
	again := !o.opened.IsZero()
	if start.Sub(o.opened) > reopenMost {
		o.wait = 0
	}
	for !o.dropped {
		if o.wait > 0 && !o.pause(o.wait) {
			break
		}
		o.wait = min(max(reopenFirst, 2*o.wait), reopenMost)
		e.mu.Unlock()
		s, err := e.conns.opener.Open(e.ctx, o.to)
		e.mu.Lock()
		if err == nil {
			return o.connected(s, again)
		}
		if err = e.transport.Unreachable(o.to, time.Since(start), err); err != nil {
			e.fail(err)
		}
	}
	return false
}

// connected uses s from now on. It repeats the frames of the last channel that may not have
// arrived.
func (o *Outlet) connected(s channel.Sender, again bool) bool {
	e := o.e
	if o.dropped {
		s.Close()
		return false
	}
	o.opened, o.sender, o.limits = time.Now(), s, s.Limits()
	if ring, ok := s.(RingSender); ok {
		o.ring = ring
		o.memory, _ = s.(MemorySender)
		o.push()
		if e.conns.poller.pushLater(o); o.pushing {
			e.conns.poller.watch()
		}
		return true
	}
	if o.again = again; again {
		e.transport.Reopened(o)
	}
	return true
}

// Reopen replaces the channel to a process, if one is open. It is for channels that may no longer
// work, or for which there is a better path. Frames that may not have arrived are sent again. A ring
// stays open, because it cannot break.
func (e *Engine) Reopen(to view.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.view.Has(to) || e.err != nil {
		return
	}
	if o := e.conns.outlets[e.conns.index(to)]; o != nil {
		o.reopen()
	}
}

// reopen replaces the channel of o, if it is open and may break. e.mu is held.
func (o *Outlet) reopen() {
	if o.dropped || o.sender == nil || o.ring != nil {
		return
	}
	o.sender.Close() // the writer and the goroutine of o then get an error
	o.broken = true
	o.signal()
}

// pause waits, and reports whether o is still not dropped. e.mu is held, but not while it waits.
func (o *Outlet) pause(d time.Duration) bool {
	e := o.e
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !o.dropped {
		e.mu.Unlock()
		select {
		case <-o.filled: // o may have been dropped
			e.mu.Lock()
		case <-timer.C:
			e.mu.Lock()
			return !o.dropped
		}
	}
	return false
}

// Repeat makes the channel of o, which is new, carry the frames in the queue again. e.mu is held.
func (o *Outlet) Repeat() { o.written = 0 }
