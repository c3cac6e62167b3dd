package engine

import (
	"fmt"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// AnySource and AnyTag match every source and tag. They are untyped because
// sources are int and tags int32.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Status describes a message.
type Status struct {
	Source int // rank
	Tag    int32
	Size   int // bytes
}

func statusOf(m protection.Message) Status {
	return Status{Source: m.Source, Tag: m.Tag, Size: len(m.Payload)}
}

// A TruncateError says that a message was longer than the buffer of the
// receive that it matched. The message is lost.
type TruncateError struct {
	Status   Status
	Capacity int // bytes of the buffer
}

// Error names the message and both lengths.
func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d with tag %d, buffer of %d bytes", e.Status.Size, e.Status.Source, e.Status.Tag, e.Capacity)
}

// A Request is a send or receive under way. It belongs to the engine until it
// is done.
type Request struct {
	// Of a receive:
	source   int
	tag      int32
	buf      []byte
	wildcard bool // source was AnySource
	exact    bool // takes the message (source, seq) and no other
	seq      uint64
	point    protection.Point // of a wildcard
	proposed bool             // the protocol has been given bound as its outcome
	bound    message

	done    bool
	status  Status
	payload []byte // received, not yet copied to buf
	waiter  *waiter
}

var requests = sync.Pool{New: func() any { return new(Request) }}

func (r *Request) complete(m protection.Message) {
	r.status, r.payload, r.bound = statusOf(m), m.Payload, message{}
	r.finish()
}

func (r *Request) finish() {
	r.done = true
	r.waiter.wake()
}

// wait waits until r is done. e.mu is held.
func (e *Engine) wait(r *Request) error {
	if r.done {
		return nil
	}
	w := waiters.Get().(*waiter)
	r.waiter = w
	err := e.await(w, func() bool { return r.done })
	r.waiter = nil
	waiters.Put(w)
	return err
}

// result copies what r received to its buffer. The program's own goroutine
// does that, without holding the engine up.
func (r *Request) result() (Status, error) {
	if len(r.payload) > len(r.buf) {
		return r.status, &TruncateError{Status: r.status, Capacity: len(r.buf)}
	}
	copy(r.buf, r.payload)
	release(r.payload)
	r.payload = nil
	return r.status, nil
}

// Wait waits until r is done and returns its result. It may be called again.
func (e *Engine) Wait(r *Request) (Status, error) {
	e.mu.Lock()
	err := e.wait(r)
	e.mu.Unlock()
	if err != nil {
		return Status{}, err
	}
	return r.result()
}

// Waitany waits until one of the requests is done and returns its index.
func (e *Engine) Waitany(rs []*Request) (int, error) {
	done, err := e.decideRequests(rs, func() ([]uint64, bool) {
		done := firstDone(rs)
		return done, len(done) > 0
	})
	if err != nil || len(done) != 1 {
		return -1, orMalformed(err)
	}
	return done[0], nil
}

// Waitsome waits until some of the requests are done and returns their indices.
func (e *Engine) Waitsome(rs []*Request) ([]int, error) {
	return e.decideRequests(rs, func() ([]uint64, bool) {
		done := allDone(rs)
		return done, len(done) > 0
	})
}

// Testany returns the index of a request that is done, or -1.
func (e *Engine) Testany(rs []*Request) (int, error) {
	done, err := e.decideRequests(rs, func() ([]uint64, bool) { return firstDone(rs), true })
	if err != nil || len(done) == 0 {
		return -1, err
	}
	return done[0], nil
}

// Testsome returns the indices of the requests that are done.
func (e *Engine) Testsome(rs []*Request) ([]int, error) {
	return e.decideRequests(rs, func() ([]uint64, bool) { return allDone(rs), true })
}

// Testall reports whether all requests are done. At a replica they may not be
// so yet, but will: Wait for them.
func (e *Engine) Testall(rs []*Request) (bool, error) {
	done, err := e.decideRequests(rs, func() ([]uint64, bool) {
		if done := allDone(rs); len(done) == len(rs) {
			return done, true
		}
		return nil, true
	})
	return err == nil && len(done) == len(rs), err
}

func firstDone(rs []*Request) []uint64 {
	for i, r := range rs {
		if r.done {
			return []uint64{uint64(i)}
		}
	}
	return nil
}

func allDone(rs []*Request) []uint64 {
	var done []uint64
	for i, r := range rs {
		if r.done {
			done = append(done, uint64(i))
		}
	}
	return done
}
