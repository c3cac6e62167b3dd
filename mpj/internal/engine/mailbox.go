package engine

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// A Mailbox is the state of one context.
type Mailbox struct {
	match.Box
	Points    uint64    // number of points taken
	Abandoned bool      // the program receives no more messages in this context
	Notice    bool      // a failure notice has arrived; it ends waiting calls
	probes    []*Waiter // waiters to wake when a message has arrived or a receive is no longer posted
}

// A message is a message of package match.
type message = match.Message

// Packages match and engineapi have the same wildcards.
var _ = [1]struct{}{}[match.AnySource-engineapi.AnySource|match.AnyTag-engineapi.AnyTag]

// WakeProbes wakes the waiters of probes, so that they check their conditions again.
func (b *Mailbox) WakeProbes() {
	for _, w := range b.probes {
		w.Wake()
	}
}

// WakePosts wakes the waiters of posted receives, so that they check their conditions again.
func (b *Mailbox) WakePosts() {
	for r := range b.Posts() {
		RequestOf(r).waiter.Wake()
	}
}

// EndPost withdraws posted receive r, which fails with err.
func (b *Mailbox) EndPost(r *Request, err error) {
	b.Withdraw(&r.Recv)
	r.Err = err
	r.Finish()
}

// RequestOf returns the request that contains r, or nil if r is nil.
func RequestOf(r *match.Recv) *Request {
	if r == nil {
		return nil
	}
	return r.Owner.(*Request)
}

// StatusOf returns the status of a receive that gets m.
func StatusOf(m message) Status {
	return Status{Source: m.Source, Tag: m.Tag, Size: m.Size}
}
