package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// Idup is the nonblocking form of Dup. d has its ranks, attributes and hints at once. Until the request is
// complete, every call on d fails. call is the name of the program's function. All ranks of c call
// Idup.
//
// The communicators of one parent are created one after the other, in the order of the calls, so
// that their agreements can use the same context.
//
//	Idup  |-- agreement --|
//	Idup   ................|-- agreement --|
//	Dup      ...............................|-- agreement --|
func Idup(c, d, local *Comm, x *Info, call string) (*Request, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	before, done, l := queueIdup(c)
	resemble(c, d, local, l)
	copyAttributes(c, d)
	addHints(d, x)
	d.topology = c.topology
	d.freed.Store(true)
	d.incomplete.Store(true)
	compared, description := lastCompared(c), ""
	if compared != nil {
		description = compared.call
	}
	r := c.engine.Begin()
	c.engine.Go(func() { // until all ranks have called Idup, at the latest when the engine stops
		defer close(done)
		if before != nil {
			<-before
		}
		err := compared.wait()
		if err == nil {
			err = completeIdup(c, d, l, compared)
		}
		c.engine.Finish(r, engineapi.Status{}, err)
	})
	return NewCollective(c, call, r, description), nil
}

// queueIdup returns the lineage of the next communicator created from c, the end of the Idup before
// it, or nil, and the channel to close at its own end.
func queueIdup(c *Comm) (before <-chan struct{}, done chan<- struct{}, l lineage) {
	c.making.Lock()
	defer c.making.Unlock()
	end := make(chan struct{})
	before, c.idups = c.idups, end
	return before, end, c.descend()
}

// completeIdup finds the id of d, which is then ready for use. compared is the comparison of the call,
// or nil without checks.
func completeIdup(c, d *Comm, l lineage, compared *comparison) error {
	if compared != nil {
		record(c, ManagementSlot, compared.call)
		defer record(c, ManagementSlot, "")
	}
	id, err := c.identify(l, agreementOf(c))
	if err != nil {
		return err
	}
	enter(d, id)
	d.freed.Store(false)
	d.incomplete.Store(false)
	return nil
}
