package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// Idup is the nonblocking form of Dup. d has its ranks, attributes and hints at once. Until the request is
// complete, every call on d fails. carryOut carries out the duplication: it calls duplicate, or
// returns an error if the ranks make different calls. All ranks of c call Idup.
//
// The communicators of one parent are created one after the other, in the order of the calls, so
// that their agreements can use the same context.
//
//	Idup  |-- agreement --|
//	Idup   ................|-- agreement --|
//	Dup      ...............................|-- agreement --|
func Idup(c, d, local *Comm, x *Info, call, description string, carryOut func(duplicate func() error) error) (*Request, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	before, done, l := queueIdup(c)
	resemble(c, d, local, l)
	copyAttributes(c, d)
	addHints(d, x)
	d.freed.Store(true)
	d.incomplete.Store(true)
	r := c.engine.Begin()
	c.engine.Go(func() { // until all ranks have called Idup, at the latest when the engine stops
		defer close(done)
		if before != nil {
			<-before
		}
		err := carryOut(func() error { return completeIdup(c, d, l) })
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

// completeIdup finds the id of d, which is then ready for use.
func completeIdup(c *Comm, d *Comm, l lineage) error {
	id, err := c.identify(l, agreementOf(c))
	if err != nil {
		return err
	}
	enter(d, id)
	d.freed.Store(false)
	d.incomplete.Store(false)
	return nil
}
