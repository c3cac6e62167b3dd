package core

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A nonblocking collective runs the blocking collective in a goroutine. Several operations of one
// communicator can be in progress at the same time, each in its own context. An operation is
// identified by its number, which is the same at all ranks because all ranks start operations in the
// same order.
//
//	operation  0   1  ...  63  64 ...
//	slot      64  65  ... 127  64 ...  waits until operation 0 is done at this rank
//
// Every 64th operation uses the same slot. The next operation in a slot may start at another rank
// before its predecessor is done at this rank. Their messages do not mix, because messages of one
// rank arrive in the order of its operations, and receives are posted in that order.

const (
	// OperationSlot is the first slot of nonblocking collectives.
	OperationSlot = 64
	operationsMax = 64 // maximum number in progress
)

// An operations contains the state of the nonblocking collectives of one communicator.
type operations struct {
	mu    sync.Mutex
	count int
	ends  [operationsMax]chan struct{} // end of the last operation in each slot; closed when it ends
}

// next returns the slot of the next operation and the channel to close when the operation is done.
// If before is not nil, the operation must first wait until before is closed.
func (o *operations) next() (slot uint32, before <-chan struct{}, done chan<- struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.count % operationsMax
	o.count++
	previous, end := o.ends[i], make(chan struct{})
	o.ends[i] = end
	return OperationSlot + uint32(i), previous, end
}

// slots returns the number of slots that have been used.
func (o *operations) slots() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(o.count, operationsMax)
}

// start runs collective as the next nonblocking operation of c. The collective sends and receives
// only in the context of the slot. The request reports its error. call is the name of the program's
// function.
func start(c *Comm, call string, collective func(slot uint32) error) *Request {
	slot, before, done := c.operations.next()
	compared := lastCompared(c)
	if compared != nil {
		record(c, slot, compared.call)
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
		c.engine.Finish(r, engineapi.Status{}, err)
	})
	description := ""
	if compared != nil {
		description = compared.call
	}
	return NewCollective(c, call, r, description)
}

// Begun returns the number of nonblocking collectives that have been started on c, which is part of a
// checkpoint.
func Begun(c *Comm) int {
	o := &c.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// SetBegun restores the number that Begun returned. As many collectives are complete.
func SetBegun(c *Comm, count int) {
	o := &c.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count = count
	clear(o.ends[:])
}
