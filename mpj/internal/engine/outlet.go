package engine

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An outlet is what goes to one process: a queue of frames, and the channel.
// Who writes? A ring is filled by whoever makes progress. Another channel is
// written by the outlet's own goroutine, or, when that has nothing to do, by the
// goroutine of the program that sends. In an engine without a protocol the
// queue keeps what was written until the receiver has acknowledged it, because
// the channel may break.
type outlet struct {
	to      view.Process
	queue   []parcel
	space   []parcel        // the beginning of the queue's memory
	frames  []channel.Frame // of writeNow
	written int             // so many of the queue are in the channel
	filled  chan struct{}   // of capacity 1: something has changed for the goroutine
	sender  channel.Sender  // while open
	ring    ringSender      // the same, if it is one
	memory  memorySender    // the same, if its receiver may read
	writing bool            // somebody uses sender
	pushing bool            // is in the poller's list
	broken  bool            // sender has failed
	// dropped says that nothing goes to this process any more.
	dropped bool

	// Without a protocol:
	seq       uint64 // of the last frame
	credit    int    // bytes that may still go eagerly
	granted   uint32 // what the receiver has consumed so far, as it counts
	announced map[uint64]*Request
	told      uint64 // frames of Tell

	opened time.Time     // when a channel was opened last
	wait   time.Duration // before the next is
}

// A parcel is a frame in a queue. When it is done with, its payload goes back
// to where it came from, and the send that it belongs to is done.
type parcel struct {
	channel.Frame
	pooled bool
	owner  *Request
}

// reopenFirst and reopenMost are the waits before a channel is opened again:
// the first, and the one that doubling it ends at. A channel that lived for
// longer than the latter makes the count start anew.
const (
	reopenFirst = 5 * time.Millisecond
	reopenMost  = 500 * time.Millisecond
)

// patience is how long, in a job without replicas, a process to which there is
// no channel may still turn out to have left the view, or to come back, before
// that is an error. Longer than a view ever takes.
var patience = 30 * time.Second // a variable for tests

func size(f channel.Frame) int { return channel.HeaderSize + int(f.Size) }

// index is the place of process p in outlets and inlets.
func (e *Engine) index(p view.Process) int { return p.Rank*e.view.R + p.Replica }

// outlet returns what goes to p. e.mu is held.
func (e *Engine) outlet(p view.Process) *outlet {
	i := e.index(p)
	o := e.outlets[i]
	if o == nil {
		o = &outlet{to: p, filled: make(chan struct{}, 1), credit: eagerCredit}
		e.outlets[i] = o
		if !e.view.Live(p) { // it has finished: nobody takes anything there
			o.dropped = true
			return o
		}
		e.running.Add(1)
		go e.write(o) // until o is dropped, or has a ring
	}
	return o
}

// enqueue gives a frame of the protocol's to its destination. e.mu is held.
func (e *Engine) enqueue(envelope protection.Envelope) {
	if e.err != nil || !e.view.Live(envelope.To) {
		e.letGo(envelope.Frame.Payload)
		return
	}
	e.put(e.outlet(envelope.To), parcel{Frame: envelope.Frame})
}

// put appends a parcel to the queue of o and lets it be written. e.mu is held.
func (e *Engine) put(o *outlet, p parcel) {
	if !e.queueUp(o, p) {
		return
	}
	if o.ring == nil {
		if o.to.Rank != e.writes {
			o.signal()
		}
		return
	}
	e.push(o)
	if len(o.queue) > 0 && !o.pushing {
		o.pushing = true
		e.poller.pushing = append(e.poller.pushing, o)
	}
}

// queueUp appends a parcel to the queue of o, or ends it if nothing goes there.
func (e *Engine) queueUp(o *outlet, p parcel) bool {
	if o.dropped {
		e.done(p)
		return false
	}
	if o.queue = append(o.queue, p); cap(o.queue) > cap(o.space) {
		o.space = o.queue[:0]
	}
	e.queued += size(p.Frame)
	return true
}

func (o *outlet) signal() {
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// popProtected ends what the protocol will send again. Receipts and Queries are
// the engine's own and stay: this process may have been asked anew, and have
// answered, before it got hold of the channel that its answer goes by.
func (e *Engine) popProtected(o *outlet) {
	var own []parcel
	for _, p := range o.queue {
		if p.Kind == channel.Receipt || p.Kind == channel.Query {
			own = append(own, p)
		}
	}
	e.pop(o, len(o.queue))
	for _, p := range own {
		e.queueUp(o, p)
	}
}

// push moves what there is room for into the ring of o.
func (e *Engine) push(o *outlet) {
	n := 0
	for n < len(o.queue) && !o.dropped {
		done, err := o.ring.TrySend(o.queue[n].Frame)
		if err != nil { // the receiver is gone: the view will say so
			n = len(o.queue)
			break
		}
		if !done {
			break
		}
		n++
	}
	e.pop(o, n)
}

// pop ends the first n parcels of o. e.mu is held.
func (e *Engine) pop(o *outlet, n int) {
	if n == 0 {
		return
	}
	for i := range n {
		e.done(o.queue[i])
		e.queued -= size(o.queue[i].Frame)
		o.queue[i] = parcel{}
	}
	o.written = max(0, o.written-n)
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = o.space
	}
	e.relieve()
}

// done ends one parcel.
func (e *Engine) done(p parcel) {
	switch {
	case p.pooled:
		e.giveBack(p.Payload)
	case e.protocol != nil:
		e.letGo(p.Payload)
	}
	if p.owner != nil {
		e.bodyDone()
		p.owner.body = nil
		p.owner.finish()
	}
}

// drop ends the writing to a process that has left the view: what waits for it
// waits no more. e.mu is held.
func (e *Engine) drop(o *outlet) {
	if o == nil || o.dropped {
		return
	}
	o.dropped = true
	if o.writing { // what is being written is not to be used again
		for i := range o.written {
			o.queue[i].Payload, o.queue[i].pooled = nil, false
		}
	}
	e.pop(o, len(o.queue))
	for name, r := range o.announced {
		delete(o.announced, name)
		e.bodyDone()
		r.finish()
	}
	if o.sender != nil {
		o.sender.Close()
	}
	o.signal()
}

// directFrames bounds what writeNow writes: a message, and what has waited for it.
const directFrames = 4

// writeNow writes the queue of o from the calling goroutine, if the outlet's
// own has nothing to do. It spares a small message two switches of goroutines.
// e.mu is held, but not while it writes.
func (e *Engine) writeNow(o *outlet) {
	n := len(o.queue) - o.written
	if o.sender == nil || o.ring != nil || o.writing || o.broken || o.dropped || n > directFrames {
		o.signal()
		return
	}
	o.frames = o.frames[:0]
	for _, p := range o.queue[o.written:] {
		o.frames = append(o.frames, p.Frame)
	}
	o.writing = true
	o.written += n
	sender := o.sender
	e.mu.Unlock()
	err := sender.Send(o.frames...)
	e.mu.Lock()
	clear(o.frames)
	e.wrote(o, n, err)
	if o.broken || o.written < len(o.queue) || o.dropped {
		o.signal()
	}
}

// writeTo writes what put has left to the calling goroutine because writes was
// rank. e.mu is held, but not while it writes.
func (e *Engine) writeTo(rank int) {
	if e.writes != rank {
		return
	}
	e.writes = noRank
	for k := range e.view.R {
		o := e.outlets[e.index(view.Process{Rank: rank, Replica: k})]
		if o != nil && o.ring == nil && o.written < len(o.queue) {
			e.writeNow(o)
		}
	}
}

// wrote takes note that n frames of the queue are in the channel.
func (e *Engine) wrote(o *outlet, n int, err error) {
	o.writing = false
	switch {
	case o.dropped:
	case err != nil:
		o.broken = true
	case e.protocol != nil: // it keeps for itself what may have to go again
		e.pop(o, n)
	default:
		e.popAcks(o)
	}
}

// popAcks ends the acknowledgements at the head of the queue, which nobody
// acknowledges.
func (e *Engine) popAcks(o *outlet) {
	n := 0
	for n < o.written && o.queue[n].Kind == channel.Ack {
		n++
	}
	e.pop(o, n)
}

// write is the goroutine of o.
func (e *Engine) write(o *outlet) {
	defer e.running.Done()
	defer func() {
		if o.sender != nil && o.ring == nil {
			o.sender.Close()
		}
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	var frames []channel.Frame
	for e.due(o) {
		if o.sender == nil {
			if !e.connect(o) || o.ring != nil {
				return
			}
			continue
		}
		first := o.written
		for _, p := range o.queue[first:] {
			frames = append(frames, p.Frame)
		}
		o.writing = true
		o.written = len(o.queue)
		sender := o.sender
		e.mu.Unlock()
		err := sender.Send(frames...)
		e.mu.Lock()
		e.wrote(o, len(frames), err)
		clear(frames)
		frames = frames[:0]
	}
}

// due waits until the goroutine of o has something to do, and returns false
// when o is dropped. e.mu is held, but not while it waits.
func (e *Engine) due(o *outlet) bool {
	for {
		if o.dropped {
			return false
		}
		if o.broken && !o.writing {
			o.sender.Close()
			o.sender, o.broken = nil, false
		}
		if o.sender == nil && (len(o.queue) > 0 || !o.opened.IsZero()) {
			return true
		}
		if o.sender != nil && !o.writing && o.written < len(o.queue) {
			return true
		}
		var broken <-chan struct{}
		if o.sender != nil {
			broken = o.sender.Broken()
		}
		e.mu.Unlock()
		select {
		case <-o.filled:
			e.mu.Lock()
		case <-broken:
			e.mu.Lock()
			o.broken = true
			if o.writing {
				e.pause(o, reopenFirst) // the writer will notice as well
			}
		}
	}
}

// connect opens the channel of o, again and again until it succeeds or o is
// dropped; it then returns false. e.mu is held, but not meanwhile.
func (e *Engine) connect(o *outlet) bool {
	start := time.Now()
	again := !o.opened.IsZero()
	if start.Sub(o.opened) > reopenMost {
		o.wait = 0
	}
	for !o.dropped {
		if o.wait > 0 && !e.pause(o, o.wait) {
			break
		}
		o.wait = min(max(reopenFirst, 2*o.wait), reopenMost)
		e.mu.Unlock()
		s, err := e.opener.Open(e.ctx, o.to)
		e.mu.Lock()
		if err == nil {
			return e.connected(o, s, again)
		}
		if e.protocol == nil && time.Since(start) > patience {
			e.fail(fmt.Errorf("channel to process %v: %w", o.to, err))
		}
	}
	return false
}

// connected uses s from now on. What was in the last channel and may not have
// arrived goes again.
func (e *Engine) connected(o *outlet, s channel.Sender, again bool) bool {
	if o.dropped {
		s.Close()
		return false
	}
	o.opened, o.sender = time.Now(), s
	if ring, ok := s.(ringSender); ok {
		o.ring = ring
		o.memory, _ = s.(memorySender)
		e.push(o)
		if len(o.queue) > 0 {
			o.pushing = true
			e.poller.pushing = append(e.poller.pushing, o)
			e.poller.watch()
		}
		return true
	}
	o.written = 0
	switch in := e.inlets[e.index(o.to)]; {
	case !again:
	case e.protocol == nil:
		if in != nil { // the last one may have been lost
			e.acknowledge(in)
		}
	default:
		e.popProtected(o)
		e.apply(e.protocol.Reopened(o.to))
		e.ask() // a Query may have been lost
		e.relieve()
		e.armTick()
	}
	return true
}

// pause waits and reports whether o has not been dropped meanwhile. e.mu is
// held, but not while it waits.
func (e *Engine) pause(o *outlet, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !o.dropped {
		e.mu.Unlock()
		select {
		case <-o.filled: // perhaps dropped
			e.mu.Lock()
		case <-timer.C:
			e.mu.Lock()
			return !o.dropped
		}
	}
	return false
}
