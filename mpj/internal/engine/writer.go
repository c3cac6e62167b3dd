package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// directFrames bounds the frames that WriteNow writes: a message, and earlier frames in the queue.
const directFrames = 4

// noRank takes the place of a rank where there is none.
const noRank = -1

// WriteNow writes the queue of o from the calling goroutine, if the outlet's own goroutine is idle.
// For a small message, this saves two switches of goroutines. e.mu is held, but not while it writes.
func (o *Outlet) WriteNow() {
	e := o.e
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
	o.wrote(n, err)
	if o.broken || o.written < len(o.queue) || o.dropped {
		o.signal()
	}
}

// deferWrites makes put leave the writing to a rank's channels to the calling goroutine, which calls
// writeTo before it releases the mutex.
func (c *connections) deferWrites(rank int) { c.writes = rank }

// writeTo writes the frames that put left to the calling goroutine because of deferWrites. It begins
// with the master, because the other ranks wait for masters. e.mu is held, but not while it writes.
func (c *connections) writeTo(rank int) {
	if c.writes != rank {
		return
	}
	c.writes = noRank
	replicas, first := c.replicas, c.e.view.Masters[rank] // of this view: it may change below
	for k := range replicas {
		to := view.Process{Rank: rank, Replica: first + k}
		if to.Replica >= replicas {
			to.Replica -= replicas
		}
		o := c.outlets[c.index(to)]
		if o != nil && o.ring == nil && o.written < len(o.queue) {
			o.WriteNow()
		}
	}
}

// wrote records that n frames of the queue have been written to the channel.
func (o *Outlet) wrote(n int, err error) {
	e := o.e
	o.writing, o.again = false, false
	switch {
	case o.dropped:
	case err != nil:
		o.broken = true
	default:
		e.transport.Written(o, n)
	}
}

// write is the goroutine of o.
func (o *Outlet) write() {
	e := o.e
	defer e.running.Done()
	defer func() {
		if o.sender != nil && o.ring == nil {
			o.sender.Close()
		}
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	var frames []frame.Frame
	for o.due() {
		if o.sender == nil {
			if !o.connect() || o.ring != nil {
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
		o.wrote(len(frames), err)
		clear(frames)
		frames = frames[:0]
	}
}

// due waits until the goroutine of o has work to do, and returns false when o is dropped. e.mu is
// held, but not while it waits.
func (o *Outlet) due() bool {
	e := o.e
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
				o.pause(reopenFirst) // the writer will also notice the break
			}
		}
	}
}
