package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An outlet is the queue of frames to one process, which one goroutine writes.
type outlet struct {
	to     view.Process
	frames []channel.Frame
	filled chan struct{}  // of capacity 1: frames or dropped has changed
	sender channel.Sender // while open
	// dropped says that nothing goes to this process any more.
	dropped bool

	opened time.Time     // when a channel was opened last
	wait   time.Duration // before the next is
}

// reopenFirst and reopenMost are the waits before a channel is opened again:
// the first, and the one that doubling it ends at. A channel that lived for
// longer than the latter makes the count start anew.
const (
	reopenFirst = 5 * time.Millisecond
	reopenMost  = 500 * time.Millisecond
)

// patience is how long, in a job without replicas, a process whose channel
// broke may still turn out to have left the view, before that is an error:
// what was on the way cannot be sent again. Longer than a view ever takes.
var patience = 30 * time.Second // a variable for tests

var errBroken = errors.New("the channel broke")

func size(f channel.Frame) int { return channel.HeaderSize + len(f.Payload) }

// enqueue puts a frame into the outlet of its destination. e.mu is held.
func (e *Engine) enqueue(envelope protection.Envelope) {
	if e.err != nil || !e.view.Live(envelope.To) {
		return
	}
	o := e.outlets[envelope.To]
	if o == nil {
		o = &outlet{to: envelope.To, filled: make(chan struct{}, 1)}
		e.outlets[envelope.To] = o
		e.running.Add(1)
		go e.write(o) // until o is dropped
	}
	o.frames = append(o.frames, envelope.Frame)
	e.queued += size(envelope.Frame)
	o.signal()
}

func (o *outlet) signal() {
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// drop ends the writing to a process that has left the view. e.mu is held.
func (e *Engine) drop(o *outlet) {
	if o.dropped {
		return
	}
	o.dropped = true
	e.forget(o.frames)
	o.frames = nil
	if o.sender != nil {
		o.sender.Close()
	}
	o.signal()
}

// forget takes frames out of the account of queued bytes.
func (e *Engine) forget(frames []channel.Frame) {
	for _, f := range frames {
		e.queued -= size(f)
	}
}

// write is the goroutine of o.
func (e *Engine) write(o *outlet) {
	defer e.running.Done()
	var (
		sender channel.Sender
		batch  []channel.Frame
		broken error // why there is no sender any more
	)
	for e.take(o, sender, &batch) {
		if sender == nil {
			if sender = e.connect(o, broken); sender == nil {
				break
			}
		}
		switch {
		case broken != nil:
			e.resend(o, batch)
			broken, batch = nil, nil
			continue
		case len(batch) == 0:
			broken = errBroken
		default:
			broken = sender.Send(batch...)
		}
		if broken != nil {
			sender.Close()
			sender = nil
			continue
		}
		e.written(batch)
		clear(batch)
		batch = batch[:0]
	}
	e.mu.Lock()
	e.forget(batch)
	e.relieve()
	e.mu.Unlock()
	if sender != nil {
		sender.Close()
	}
}

// take waits until there is something to do for the goroutine of o, and returns
// false when that is to end. Frames it exchanges with *batch, if that is empty.
// It comes back without any when the channel breaks or has been broken.
func (e *Engine) take(o *outlet, sender channel.Sender, batch *[]channel.Frame) bool {
	var broken <-chan struct{}
	if sender != nil {
		broken = sender.Broken()
	}
	for {
		e.mu.Lock()
		dropped := o.dropped
		if !dropped && len(*batch) == 0 {
			*batch, o.frames = o.frames, *batch
		}
		e.mu.Unlock()
		if dropped || len(*batch) > 0 || sender == nil && !o.opened.IsZero() {
			return !dropped
		}
		select {
		case <-o.filled:
		case <-broken:
			return true
		}
	}
}

// written takes note that frames are in the channel. Without replicas nobody
// keeps their payloads.
func (e *Engine) written(frames []channel.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.R == 1 {
		for _, f := range frames {
			release(f.Payload)
		}
	}
	e.forget(frames)
	e.relieve()
}

// connect opens the channel of o, again and again until o is dropped; it then
// returns nil. broken is why there was one before that is no more, or nil.
func (e *Engine) connect(o *outlet, broken error) channel.Sender {
	start, err := time.Now(), broken
	if start.Sub(o.opened) > reopenMost {
		o.wait = 0
	}
	for {
		if o.wait > 0 && !e.pause(o, o.wait) {
			return nil
		}
		o.wait = min(max(reopenFirst, 2*o.wait), reopenMost)
		if broken == nil || e.replicated() {
			var s channel.Sender
			if s, err = e.opener.Open(e.ctx, o.to); err == nil {
				o.opened = time.Now()
				return e.connected(o, s)
			}
		}
		if !e.replicated() && time.Since(start) > patience {
			e.Fail(fmt.Errorf("channel to process %v: %w", o.to, err))
		}
	}
}

func (e *Engine) replicated() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view.R > 1
}

// connected keeps s, so that drop can close it.
func (e *Engine) connected(o *outlet, s channel.Sender) channel.Sender {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.dropped {
		s.Close()
		return nil
	}
	o.sender = s
	return s
}

// pause waits and reports whether o has not been dropped meanwhile.
func (e *Engine) pause(o *outlet, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		e.mu.Lock()
		dropped := o.dropped
		e.mu.Unlock()
		if dropped {
			return false
		}
		select {
		case <-o.filled: // perhaps dropped
		case <-timer.C:
			return true
		}
	}
}

// resend starts again on a new channel after the last one broke: the protocol
// gives out anew, in order, whatever may not have arrived, so that nothing of
// the old queue is needed.
func (e *Engine) resend(o *outlet, lost []channel.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(lost)
	e.forget(o.frames)
	o.frames = nil
	if !o.dropped {
		e.apply(e.protocol.Reopened(o.to))
		e.relieve()
		e.armTick()
	}
}
