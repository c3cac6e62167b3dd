package engine

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
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

// openTimeout is the time for which the engine of a job without replicas tries to open a channel
// before it fails. Within that time, an unreachable process may leave the view or become reachable
// again. SetToleratedHang adds the silence that the job tolerates. A new view usually takes less
// than openTimeout.
var openTimeout = 30 * time.Second // a variable for tests

// SetToleratedHang sets the time for which the job tolerates a silent peer. A link may be down for
// that long while a channel is being opened.
func (e *Engine) SetToleratedHang(silence time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns.toleratedHang = silence
}

// connect opens the channel of o, and retries until it succeeds. It returns false if o is dropped
// first. e.mu is held, but not while the channel is being opened.
func (o *outlet) connect() bool {
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
		if e.protected == nil && time.Since(start) > openTimeout+e.conns.toleratedHang {
			e.fail(fmt.Errorf("channel to process %v: %w", o.to, err))
		}
	}
	return false
}

// connected uses s from now on. It repeats the frames of the last channel that may not have
// arrived.
func (o *outlet) connected(s channel.Sender, again bool) bool {
	e := o.e
	if o.dropped {
		s.Close()
		return false
	}
	o.opened, o.sender, o.limits = time.Now(), s, s.Limits()
	if ring, ok := s.(ringSender); ok {
		o.ring = ring
		o.memory, _ = s.(memorySender)
		o.push()
		if e.conns.poller.pushLater(o); o.pushing {
			e.conns.poller.watch()
		}
		return true
	}
	if e.protected == nil {
		o.popArrived()
	}
	o.written, o.again = 0, again
	switch {
	case !again:
	case e.protected == nil:
		if link := e.direct.inflows[o.to.Rank]; link != nil { // the last acknowledgement may have been lost
			e.direct.acknowledge(link)
		}
	default:
		o.popProtected()
		e.protected.reopenedTo(o.to)
	}
	return true
}

// isAnswer reports whether a frame of a kind is the engine's own answer to another process.
func isAnswer(k frame.Kind) bool { return k == frame.Receipt || k == frame.PaceReply }

// popProtected removes the frames that will be sent again. These are the frames of the protocol and,
// unless they are obsolete, the engine's own questions and reports. Answers stay, because the
// question may have been repeated before this process had the new channel. Each answer stays once.
// Otherwise the queue would grow with every channel that breaks, and channels that break early would
// never carry all of it.
func (o *outlet) popProtected() {
	var answers []parcel
	present := make(map[frame.Header]bool)
	for _, p := range o.queue {
		if isAnswer(p.Kind) && !present[p.Header] {
			present[p.Header] = true
			answers = append(answers, p)
		}
	}
	o.pop(len(o.queue))
	for _, p := range answers {
		o.queueUp(p)
	}
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
func (o *outlet) reopen() {
	if o.dropped || o.sender == nil || o.ring != nil {
		return
	}
	o.sender.Close() // the writer and the goroutine of o then get an error
	o.broken = true
	o.signal()
}

// pause waits, and reports whether o is still not dropped. e.mu is held, but not while it waits.
func (o *outlet) pause(d time.Duration) bool {
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
