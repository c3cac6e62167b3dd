package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A connections is the set of channels from and to the other processes. It hides the queues of
// frames, the goroutines that read and write channels, the replacement of channels that break, the
// lending of channels to the program, and the progress on rings (poller). It needs from the engine:
// the mutex, which guards it, the view, the context and the end of the engine, and the pools of
// payloads. From the transport, it needs a Handler for each channel, which frames of a queue are no
// longer needed, and what to send again on a new channel.
type connections struct {
	e        *Engine
	opener   channel.Opener
	replicas int       // of a rank, in the view
	outlets  []*Outlet // by process: rank*replicas + replica
	inlets   []*inlet
	early    []earlyChannel // channels from processes that are not yet in the view
	poller   poller
	queued   int // bytes in outlets
	writes   int // argument of deferWrites, or noRank

	toleratedHang time.Duration // silence that the job tolerates (SetToleratedHang)
}

// newConnections returns the connections of e, without channels.
func newConnections(e *Engine, c Config) connections {
	return connections{
		e: e, opener: c.Opener, replicas: c.View.R, writes: noRank,
		outlets: make([]*Outlet, c.View.N*c.View.R),
		inlets:  make([]*inlet, c.View.N*c.View.R),
		poller:  poller{mu: &e.mu, bell: c.Bell, crowded: c.Crowded, kick: make(chan struct{}, 1)},
	}
}

// index returns the position of process p in outlets and inlets.
func (c *connections) index(p view.Process) int { return p.Rank*c.replicas + p.Replica }

// grow makes room for the processes of v, before v becomes the view. e.mu is held.
func (c *connections) grow(v view.View) {
	before := c.replicas
	if v.R == before {
		return
	}
	outlets, inlets := make([]*Outlet, v.N*v.R), make([]*inlet, v.N*v.R)
	for rank := range v.N {
		copy(outlets[rank*v.R:], c.outlets[rank*before:(rank+1)*before])
		copy(inlets[rank*v.R:], c.inlets[rank*before:(rank+1)*before])
	}
	c.outlets, c.inlets, c.replicas = outlets, inlets, v.R
}

// follow opens and closes channels as the new view requires. e.mu is held.
func (c *connections) follow(v view.View) {
	c.acceptEarly()
	for _, o := range c.outlets {
		if o != nil && !v.Live(o.to) {
			o.drop()
		}
	}
	c.poller.wakeBorrowers() // a borrower may need to read another inlet
}

// stop ends all sending and receiving, because the engine has stopped. Rings stay open, because a
// goroutine may be polling them. e.mu is held.
func (c *connections) stop() {
	for _, o := range c.outlets {
		if o != nil {
			o.drop()
		}
	}
	for _, in := range c.inlets {
		if in != nil && in.ring == nil {
			in.receiver.Close()
		}
	}
	c.poller.stop()
}

// close closes what stop has left open, once no goroutine polls the rings any more. e.mu is held.
func (c *connections) close() {
	for _, early := range c.early {
		early.receiver.Close()
	}
	c.early = nil
	c.poller.inlets = nil // calls fail from now on, but some look for messages first
	for _, in := range c.inlets {
		if in != nil && in.ring != nil {
			in.receiver.Close()
			in.ring = nil
		}
	}
	for _, o := range c.outlets {
		if o != nil && o.ring != nil {
			o.sender.Close()
			o.ring = nil
		}
	}
}
