package engine

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An inlet is a channel from another process. One goroutine reads it. If the inlet is a ring, the
// goroutine that makes progress reads it instead.
type inlet struct {
	e        *Engine
	from     view.Process
	receiver channel.Receiver
	frame    frame.Frame // being processed; here because Handler.Arrived gets its address
	ring     ringReceiver
	sole     bool // all messages of the rank of from arrive here
	handler  Handler
	alloc    func(frame.Header) []byte // handler.Buffer, for ring; a field so that the closure is made once
	ended    chan struct{}
	loan     *loan // nil if the channel cannot be lent
}

// Accept takes over a channel on which process from sends. It replaces an earlier channel from the
// same process; the sender repeats the frames that are still in the earlier channel.
func (e *Engine) Accept(from view.Process, r channel.Receiver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns.accept(from, r)
}

// accept implements Accept. e.mu is held.
func (c *connections) accept(from view.Process, r channel.Receiver) {
	e := c.e
	if e.err != nil {
		r.Close()
		return
	}
	if e.view.State(from) == view.Vacant {
		c.keepEarly(from, r)
		return
	}
	i := c.index(from)
	before := c.inlets[i]
	in := &inlet{e: e, from: from, receiver: r, ended: make(chan struct{}), sole: !e.transport.Replicated()}
	c.inlets[i] = in
	if ring, ok := r.(ringReceiver); ok && before == nil {
		memory, _ := r.(MemoryReader)
		in.handler = e.transport.Incoming(from, true, memory)
		in.ring, in.alloc = ring, in.handler.Buffer
		close(in.ended)
		c.poller.addRing(in)
		return
	}
	in.handler = e.transport.Incoming(from, false, nil)
	if _, ok := r.(interruptible); ok {
		in.loan = &loan{recall: make(chan struct{}, 1)}
	}
	if before != nil {
		before.recall()
	}
	e.running.Add(1)
	go in.readAll(before) // until the channel ends
}

// An earlyChannel is a channel from a process that this process's view does not contain yet. Views
// and channels arrive by different paths.
type earlyChannel struct {
	from     view.Process
	receiver channel.Receiver
}

// maxEarlyChannels bounds the channels that wait for a view.
const maxEarlyChannels = 1024

// keepEarly keeps a channel until the view contains its sender. It closes an earlier channel of
// the same sender. e.mu is held.
func (c *connections) keepEarly(from view.Process, r channel.Receiver) {
	for i, early := range c.early {
		if early.from == from {
			early.receiver.Close()
			c.early[i].receiver = r
			return
		}
	}
	if len(c.early) == maxEarlyChannels {
		r.Close()
		return
	}
	c.early = append(c.early, earlyChannel{from, r})
}

// acceptEarly accepts the channels that have waited for the view. e.mu is held.
func (c *connections) acceptEarly() {
	all := c.early
	c.early = nil
	for _, early := range all {
		c.accept(early.from, early.receiver)
	}
}

func (in *inlet) readAll(before *inlet) {
	e := in.e
	defer e.running.Done()
	defer close(in.ended)
	defer in.receiver.Close()
	if before != nil {
		before.receiver.Close()
		<-before.ended
		e.mu.Lock()
		in.handler.Reopened()
		e.mu.Unlock()
	}
	alloc := func(h frame.Header) []byte {
		e.mu.Lock()
		defer e.mu.Unlock()
		return in.handler.Buffer(h)
	}
	if in.loan != nil {
		in.loan.alloc = alloc
	}
	timer := time.NewTimer(restTime)
	defer timer.Stop()
	for {
		var err error
		in.frame, err = in.receiver.Receive(alloc)
		if errors.Is(err, channel.ErrInterrupted) {
			continue
		}
		if err != nil {
			return // the sender opens another channel if it has more frames to send
		}
		if !in.readOne(timer) {
			return
		}
	}
}

// readOne processes a frame that the inlet's goroutine has read, and reports whether the goroutine
// should continue.
func (in *inlet) readOne(timer *time.Timer) bool {
	e := in.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || !in.arrived() {
		return false
	}
	if in.loan != nil && len(e.conns.poller.sleepers) == 1 && e.conns.poller.sleepers[0].woken.Load() {
		in.lend(timer)
	}
	return e.err == nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// arrived processes the frame of in, and reports whether the engine continues. e.mu is held.
func (in *inlet) arrived() bool {
	e := in.e
	if err := in.handler.Arrived(&in.frame); err != nil {
		e.fail(Violation(in.from, err))
	}
	in.frame.Payload = nil
	return e.err == nil
}

// lost closes a ring that its sender has closed, or that has violated the protocol. e.mu is held.
func (in *inlet) lost(err error) {
	in.receiver.Close()
	if !isEnd(err) && in.e.view.Live(in.from) {
		in.e.fail(Violation(in.from, err))
	}
}

// Violation returns the error for a protocol violation by process from.
func Violation(from view.Process, err error) error {
	return fmt.Errorf("process %v violated the protocol: %w", from, err)
}
