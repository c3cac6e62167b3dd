package engine

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// A Request is a pending send or receive, or an operation of the caller. It belongs to the engine
// until it is done. The exported fields are for the transport.
type Request struct {
	// For a receive. If replicas agree on it, it has a Wild.
	match.Recv
	Buf   []byte
	Whole bool     // takes a message of any length, in a new buffer
	Hold  *message // for Mprobe: takes the message, whose payload is received later

	// For a send to rank Source whose payload waits for its receive:
	context   uint32 // set for a receive, too
	Body      []byte
	Announced bool              // announced, but the receiver has not requested it
	Address   [AddressSize]byte // address of Body, for the announcement

	Attended  bool // the caller of the send waits for it at once, so it may write the frames itself
	operation bool // completed by Finish

	done    bool
	Err     error // reason of the failure, or nil
	Status  Status
	Payload []byte // received, not yet copied to Buf
	waiter  *Waiter
}

// AddressSize is the length in bytes of an address in another process's memory.
const AddressSize = 8

// Complete ends receive r with m, whose payload has arrived.
func (r *Request) Complete(m message) {
	r.Status = StatusOf(m)
	if r.Hold != nil {
		*r.Hold = m
	} else {
		r.Payload = m.Payload
	}
	r.Finish()
}

// Finish ends r. Its result is set.
func (r *Request) Finish() {
	r.done = true
	r.waiter.Wake()
}

// wait waits until r is done. e.mu is held.
func (e *Engine) wait(r *Request) error {
	if r.done {
		return nil
	}
	w := e.spares.waiter()
	r.waiter, w.request = w, r
	for !r.done {
		if e.err != nil {
			r.waiter = nil
			return e.err
		}
		if e.finished.any && e.failUnmatchable(r) {
			break
		}
		if in := e.conns.lender(r); in != nil {
			e.conns.poller.watch()
			in.borrow(w)
		} else {
			e.sleep(w)
		}
	}
	r.waiter, w.request = nil, nil
	e.spares.recycleWaiter(w)
	return nil
}

// result returns the result of r. If the received payload is not in the buffer of r yet, result
// copies it there, in the program's own goroutine, without delaying the engine.
func (r *Request) result() (Status, error) {
	if r.Err != nil {
		return r.Status, r.Err
	}
	if r.Whole || r.Payload == nil {
		return r.Status, r.truncated()
	}
	if err := r.truncated(); err != nil {
		return r.Status, err
	}
	copy(r.Buf, r.Payload)
	Release(r.Payload)
	r.Payload = nil
	return r.Status, nil
}

func (r *Request) truncated() error {
	if !r.Whole && r.Hold == nil && r.Status.Size > len(r.Buf) {
		return &TruncateError{Status: r.Status, Capacity: len(r.Buf)}
	}
	return nil
}

// Wait waits until r is done and returns the result of r. It may be called repeatedly.
func (e *Engine) Wait(r *Request) (Status, error) {
	e.mu.Lock()
	err := e.wait(r)
	e.mu.Unlock()
	if err != nil {
		return Status{}, err
	}
	return r.result()
}

// Begin returns a request that the caller completes with Finish.
func (e *Engine) Begin() *Request { return &Request{Whole: true, operation: true} }

// Finish completes a request that Begin returned.
func (e *Engine) Finish(r *Request, s Status, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.Status, r.Err = s, err
	r.Finish()
}

// Go runs f in a goroutine that Close waits for. Once the engine has stopped, all its methods fail,
// so that f can end.
func (e *Engine) Go(f func()) {
	e.running.Go(f)
}

// Cancel cancels a receive that has not matched: the receive is then done, and its Status reports
// the cancellation. Cancel has no effect on other requests. Replicas cannot cancel, because a named
// receive may have matched at one replica but not at another.
func (e *Engine) Cancel(r *Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	canceller, ok := e.transport.(Canceller)
	if !ok {
		return ErrReplicated
	}
	e.conns.poller.advance()
	if r.Posted() {
		canceller.Cancel(r)
	}
	return nil
}

// Context returns the communication context of r.
func (r *Request) Context() uint32 { return r.context }

// Announce makes r a send of payload to a rank that will request the payload.
func (r *Request) Announce(context uint32, dest int, tag int32, payload []byte) {
	r.context, r.Source, r.Tag = context, dest, tag
	r.Body, r.Announced = payload, true
}

// Detached returns a copy of r, a send whose caller no longer waits, with a copy of its payload.
func (r *Request) Detached() *Request {
	rest := *r
	rest.Body, rest.Err, rest.waiter = Duplicate(r.Body), nil, nil
	return &rest
}
