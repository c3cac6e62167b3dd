package mpj

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// A non-blocking collective is the blocking one in a goroutine: it goes on while
// the program computes. Operations of one communicator are under way at the
// same time, each in a context of its own. They are told apart by their number,
// which is the same at all ranks because all start them in the same order.
//
//	operation  0   1  ...  63  64 ...
//	slot      64  65  ... 127  64 ...  waits until operation 0 is done here
//
// A slot is used again only by the operation 64 later. That one may start at
// another rank while this one's predecessor is not done here: messages of one
// rank arrive in the order of its operations, and the receives are posted in
// that order, so that the two do not mix.

const (
	operationSlot = 64 // the first
	operationsMax = 64 // under way at the same time
)

// An operations is the non-blocking collectives of one communicator.
type operations struct {
	mu    sync.Mutex
	count int
	ends  [operationsMax]chan struct{} // of the last operation in each slot, closed at its end
}

// next returns the slot of the next operation, what it waits for, or nil, and
// what it closes when it is done.
func (o *operations) next() (slot uint32, before <-chan struct{}, done chan<- struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.count % operationsMax
	o.count++
	previous, end := o.ends[i], make(chan struct{})
	o.ends[i] = end
	return operationSlot + uint32(i), previous, end
}

// slots returns how many slots have been used.
func (o *operations) slots() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(o.count, operationsMax)
}

// start runs collective as the next non-blocking operation of c. The collective
// sends and receives in the context of the slot alone, and only returns an
// error: the request hands it on.
func (c *Comm) start(op string, collective func(slot uint32) error) *Request {
	slot, before, done := c.operations.next()
	compared := c.lastCompared()
	if compared != nil {
		c.calls(slot, compared.call)
	}
	r := c.engine.Begin()
	c.engine.Go(func() { // until collective returns, at the latest when the engine stops
		defer close(done)
		if before != nil {
			<-before
		}
		err := compared.wait()
		if err == nil {
			err = collective(slot)
		}
		c.engine.Finish(r, words.Status{}, err)
	})
	c.world.active.Add(1)
	request := &Request{comm: c, request: r, op: op, collective: true}
	if compared != nil {
		request.note(compared.call)
	}
	return request
}
