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
	notice    bool      // a failure notice has arrived; it ends waiting calls
	probes    []*Waiter // waiters to wake when a message has arrived or a receive is no longer posted
}

// A message is a message of package match. If its payload has not arrived, its Ref is the send, if
// this process is the sender, or else the transport's record of the announcement. Its Address is then
// that of the payload at the sender, if this process may read it.
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

// endPost withdraws posted receive r, which fails with err.
func (b *Mailbox) endPost(r *Request, err error) {
	b.Withdraw(&r.Recv)
	r.err = err
	r.Finish()
}

// RequestOf returns the request that contains r, or nil if r is nil.
func RequestOf(r *match.Recv) *Request {
	if r == nil {
		return nil
	}
	return r.Owner.(*Request)
}

// senderOf returns the send of m, if this process is the sender and the payload has not arrived.
func senderOf(m *message) *Request {
	r, _ := m.Ref.(*Request)
	return r
}

func statusOf(m message) Status {
	return Status{Source: m.Source, Tag: m.Tag, Size: m.Size}
}
