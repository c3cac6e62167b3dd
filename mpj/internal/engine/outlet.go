package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An Outlet is the sending side of the channel to one process: a queue of frames, and the channel. A
// goroutine that makes progress writes a ring. The outlet's own goroutine writes any other channel
// or, when that goroutine is idle, the goroutine of the program that sends. The transport decides how
// long the queue keeps written frames, because the channel may break.
type Outlet struct {
	e       *Engine
	to      view.Process
	queue   []Parcel
	space   []Parcel       // start of the queue's memory, with length 0
	frames  []frame.Frame  // scratch space of WriteNow
	written int            // number of queued parcels already written to the channel
	filled  chan struct{}  // has capacity 1; signals a change to the goroutine
	sender  channel.Sender // nil while no channel is open
	ring    RingSender     // sender, if it is a ring
	memory  MemorySender   // sender, if the receiver may read this process's memory
	writing bool           // a goroutine uses sender
	pushing bool           // the outlet is in poller.pushing
	broken  bool           // sender has failed
	// again reports that the first frames of sender may also have been sent on the previous channel.
	// So sender may still be reading them after they have been acknowledged.
	again bool
	// dropped reports that the engine sends no more frames to this process.
	dropped bool

	limits channel.Limits // of its channel
	opened time.Time      // time when a channel was last opened
	wait   time.Duration  // delay before the next attempt
}

// A Parcel is a frame in a queue. When it leaves the queue, the engine releases its payload, and the
// send that owns it, if any, is done. On a ring, a parcel leaves the queue when it has been written;
// otherwise when the transport says so. A dropped outlet ends all its parcels.
type Parcel struct {
	frame.Frame
	Pooled bool
	Owner  *Request
}

func size(f frame.Frame) int { return frame.HeaderSize + int(f.Size) }

// outlet returns the outlet to p, and creates it if necessary. e.mu is held.
func (c *connections) outlet(p view.Process) *Outlet {
	if o := c.outlets[c.index(p)]; o != nil {
		return o
	}
	return c.newOutlet(p)
}

func (c *connections) newOutlet(p view.Process) *Outlet {
	e := c.e
	o := &Outlet{e: e, to: p, filled: make(chan struct{}, 1), limits: unopened}
	c.outlets[c.index(p)] = o
	if !e.view.Live(p) || e.err != nil { // p or this process has ended, so the outlet sends no frames
		o.dropped = true
		return o
	}
	e.running.Add(1)
	go o.write() // until o is dropped, or has a ring
	return o
}

// Put appends a parcel to the queue of o. It writes the Parcel to a ring, or signals the goroutine
// of o, or leaves the writing to the caller: see deferWrites. e.mu is held.
func (o *Outlet) Put(p Parcel) {
	if !o.QueueUp(p) {
		return
	}
	c := &o.e.conns
	if o.ring == nil {
		if o.to.Rank != c.writes {
			o.signal()
		}
		return
	}
	o.push()
	c.poller.pushLater(o)
}

// QueueUp appends a parcel to the queue of o. If o is dropped, it ends the Parcel and returns
// false.
func (o *Outlet) QueueUp(p Parcel) bool {
	if o.dropped {
		o.e.transport.Sent(p)
		return false
	}
	if o.queue = append(o.queue, p); cap(o.queue) > cap(o.space) {
		o.space = o.queue[:0]
	}
	o.e.conns.queued += size(p.Frame)
	return true
}

func (o *Outlet) signal() {
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// push moves queued frames into the ring of o while there is room.
func (o *Outlet) push() {
	n := 0
	for n < len(o.queue) && !o.dropped {
		done, err := o.ring.TrySend(o.queue[n].Frame)
		if err != nil { // the receiver has ended; a view will follow
			n = len(o.queue)
			break
		}
		if !done {
			break
		}
		n++
	}
	o.Pop(n)
}

// Pop removes and ends the first n parcels of o. e.mu is held.
func (o *Outlet) Pop(n int) {
	if n == 0 {
		return
	}
	e := o.e
	for i := range n {
		e.transport.Sent(o.queue[i])
		e.conns.queued -= size(o.queue[i].Frame)
		o.queue[i] = Parcel{}
	}
	o.written = max(0, o.written-n)
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = o.space
	}
	e.relieve()
}

// relieve ends the waits that a shorter queue may end. It is called while frames are written, so it
// sends none. e.mu is held.
func (e *Engine) relieve() {
	e.transport.Relieve()
	e.flush.Wake()
}

// drop stops the writing to a process that has left the view, or to any process when the engine
// stops. It ends all sends and receives that wait for that process. e.mu is held.
func (o *Outlet) drop() {
	if o.dropped {
		return
	}
	o.dropped = true
	if o.writing { // memory that is being written must not be reused
		for i := range o.written {
			o.queue[i].Payload, o.queue[i].Pooled = nil, false
		}
	}
	o.Pop(len(o.queue))
	o.e.transport.Gone(o)
	if o.sender != nil {
		o.sender.Close()
	}
	o.signal()
}

// unopened contains the limits of an outlet whose channel is not open yet.
var unopened = channel.Limits{Copied: 64 << 10}

// To returns the process to which o sends.
func (o *Outlet) To() view.Process { return o.to }

// Keep removes from the queue of o, whose channel is new, the frames for whose headers keep returns
// false. The channel carries the other frames, including those that the previous channel has carried.
func (o *Outlet) Keep(keep func(h frame.Header) bool) {
	var kept []Parcel
	for _, p := range o.queue {
		if keep(p.Header) {
			kept = append(kept, p)
		}
	}
	o.Pop(len(o.queue))
	for _, p := range kept {
		o.QueueUp(p)
	}
}

// Dropped reports whether the engine sends no more frames to the process of o.
func (o *Outlet) Dropped() bool { return o.dropped }

// IsOpen reports whether o has a channel.
func (o *Outlet) IsOpen() bool { return o.sender != nil }

// Limits returns the limits of the channel of o.
func (o *Outlet) Limits() *channel.Limits { return &o.limits }

// Ring returns the channel of o if it is a ring, or else nil.
func (o *Outlet) Ring() RingSender { return o.ring }

// Memory returns the channel of o if the receiver may read this process's memory, or else nil.
func (o *Outlet) Memory() MemorySender { return o.memory }

// Queued returns the number of frames in the queue of o.
func (o *Outlet) Queued() int { return len(o.queue) }

// Header returns the header of a frame in the queue of o.
func (o *Outlet) Header(i int) *frame.Header { return &o.queue[i].Header }

// Written returns the number of frames at the start of the queue of o that have been written to its
// channel.
func (o *Outlet) Written() int { return o.written }

// Repeats reports whether the channel of o may still be reading frames that have been acknowledged,
// because the previous channel may also have carried them.
func (o *Outlet) Repeats() bool { return o.again && o.writing }
