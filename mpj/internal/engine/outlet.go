package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
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
	space   []parcel       // the beginning of the queue's memory
	frames  []frame.Frame  // of writeNow
	written int            // so many of the queue are in the channel
	filled  chan struct{}  // of capacity 1: something has changed for the goroutine
	sender  channel.Sender // while open
	ring    ringSender     // the same, if it is one
	memory  memorySender   // the same, if its receiver may read
	writing bool           // somebody uses sender
	pushing bool           // is in the poller's list
	broken  bool           // sender has failed
	hidden  bool           // memory cannot be read by the receiver
	// again says that the first frames of sender may have been in the last one too:
	// that they have arrived does not mean that sender reads them no more.
	again bool
	// dropped says that nothing goes to this process any more.
	dropped bool

	// Without a protocol:
	seq       uint64         // of the last frame
	arrived   uint64         // of the last one that was acknowledged
	limits    channel.Limits // of its channel
	credit    int            // bytes that may still go eagerly
	granted   uint32         // what the receiver has consumed so far, as it counts
	announced map[uint64]*Request
	told      uint64 // frames of Tell

	opened time.Time     // when a channel was opened last
	wait   time.Duration // before the next is
}

// A parcel is a frame in a queue. When it is done with, its payload goes back
// to where it came from, and the send that it belongs to is done.
type parcel struct {
	frame.Frame
	pooled bool
	owner  *Request
}

func size(f frame.Frame) int { return frame.HeaderSize + int(f.Size) }

// index is the place of process p in outlets and inlets.
func (e *Engine) index(p view.Process) int { return p.Rank*e.view.R + p.Replica }

// outlet returns what goes to p. e.mu is held.
func (e *Engine) outlet(p view.Process) *outlet {
	i := e.index(p)
	o := e.outlets[i]
	if o == nil {
		o = &outlet{to: p, filled: make(chan struct{}, 1), limits: unopened, credit: eagerCredit}
		e.outlets[i] = o
		if !e.view.Live(p) || e.err != nil { // it has finished, or this one: nothing goes there
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
