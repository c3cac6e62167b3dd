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
	from     view.Process
	receiver channel.Receiver
	ring     ringReceiver
	memory   memoryReader              // ring, if this process may read the sender's memory
	alloc    func(frame.Header) []byte // allocator for ring; a field so that the closure is made once
	ended    chan struct{}
	loan     *loan // nil if the channel cannot be lent

	link *inflow
}

// An inflow is the state of the frames from one process in an engine without a protocol. It survives
// a change of the channel.
type inflow struct {
	seq       uint64              // number of the last frame that has arrived
	uncounted uint64              // number of frames received by RecvUncounted
	unacked   int                 // bytes since the last acknowledgement, with headers
	frames    int                 // frames since the last acknowledgement
	consumed  uint32              // bytes of eager messages that have been matched, modulo 2^32
	returned  uint32              // the part of consumed that was reported to the sender
	lossless  bool                // the channel cannot break
	cleared   map[uint64]*Request // receives that wait for the body of a message
	claimed   uint64              // number of the arriving frame for which request was looked up
	request   *Request            // receive for the arriving frame, or nil
	duplicate bool                // the arriving frame has arrived before
	address   [addressSize]byte   // payload of the arriving frame, if the payload is an address
}

// Accept takes over a channel on which process from sends. It replaces an earlier channel from the
// same process; the sender repeats the frames that are still in the earlier channel.
func (e *Engine) Accept(from view.Process, r channel.Receiver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accept(from, r)
}

// accept implements Accept. e.mu is held.
func (e *Engine) accept(from view.Process, r channel.Receiver) {
	if e.err != nil {
		r.Close()
		return
	}
	if e.view.State(from) == view.Vacant {
		e.keepEarly(from, r)
		return
	}
	i := e.index(from)
	before := e.inlets[i]
	in := &inlet{from: from, receiver: r, ended: make(chan struct{})}
	e.inlets[i] = in
	if e.protected == nil {
		if in.link = new(inflow); before != nil {
			in.link = before.link
		}
	}
	if ring, ok := r.(ringReceiver); ok && before == nil {
		in.memory, _ = r.(memoryReader)
		in.ring, in.alloc = ring, func(h frame.Header) []byte { return e.place(in, h) }
		if in.link != nil {
			in.link.lossless = true
		}
		close(in.ended)
		e.addRing(in)
		return
	}
	if _, ok := r.(interruptible); ok {
		in.loan = &loan{recall: make(chan struct{}, 1)}
	}
	if before != nil {
		before.recall()
	}
	e.running.Add(1)
	go e.readAll(in, before) // until the channel ends
}

func (e *Engine) readAll(in, before *inlet) {
	defer e.running.Done()
	defer close(in.ended)
	defer in.receiver.Close()
	if before != nil {
		before.receiver.Close()
		<-before.ended
		e.mu.Lock()
		e.acknowledge(in) // report the arrived frames to the sender, so that it repeats only the rest
		if e.err == nil && e.protected != nil {
			e.protected.reopenedFrom(in.from)
		}
		e.mu.Unlock()
	}
	alloc := func(h frame.Header) []byte {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.place(in, h)
	}
	if in.loan != nil {
		in.loan.alloc = alloc
	}
	timer := time.NewTimer(restTime)
	defer timer.Stop()
	for {
		f, err := in.receiver.Receive(alloc)
		if errors.Is(err, channel.ErrInterrupted) {
			continue
		}
		if err != nil {
			return // the sender opens another channel if it has more frames to send
		}
		if !e.readOne(in, &f, timer) {
			return
		}
	}
}

// readOne processes a frame that the inlet's goroutine has read, and reports whether the goroutine
// should continue.
func (e *Engine) readOne(in *inlet, f *frame.Frame, timer *time.Timer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || !e.arrived(in, f) {
		return false
	}
	if in.loan != nil && len(e.sleepers) == 1 && e.sleepers[0].woken.Load() {
		e.lend(in, timer)
	}
	return e.err == nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// place returns the buffer for the payload of a frame: the buffer of the matching receive if it is
// already known, or else new memory. Payloads of the protocol's own frames are never given back, so
// place does not allocate them from the pool. e.mu is held.
func (e *Engine) place(in *inlet, h frame.Header) []byte {
	switch {
	case e.protected == nil:
		if b := e.claim(in.link, in.from, h); b != nil {
			return b
		}
	case h.Kind != frame.Data:
		return make([]byte, h.Size)
	}
	return e.room(int(h.Size))
}

// arrived processes a frame, and reports whether the engine continues. e.mu is held.
func (e *Engine) arrived(in *inlet, f *frame.Frame) bool {
	var err error
	if e.protected == nil {
		err = e.arrivedDirect(in, f)
	} else {
		err = e.protected.arrived(in.from, f)
	}
	if err != nil {
		e.fail(protocolError(in.from, err))
	}
	return e.err == nil
}

// protocolError returns the error for a protocol violation by process from.
func protocolError(from view.Process, err error) error {
	return fmt.Errorf("process %v violated the protocol: %w", from, err)
}
