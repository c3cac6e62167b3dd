package engine

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// A mailbox is the state of one context.
type mailbox struct {
	match.Box
	points    uint64    // number of points taken
	notice    bool      // a failure notice has arrived; it ends waiting calls
	abandoned bool      // the program receives no more messages in this context
	probes    []*waiter // waiters to wake when a message has arrived or a receive is no longer posted
}

// A message is a message of package match. If its payload has not arrived, its Ref is the send, if this process is the
// sender, or the inflow of the announcement. Its Address is then that of the payload at the sender, if this process may
// read it.
type message = match.Message

// Packages match and engineapi have the same wildcards.
var _ = [1]struct{}{}[match.AnySource-engineapi.AnySource|match.AnyTag-engineapi.AnyTag]

// wakeProbes wakes the waiters of probes, so that they check their conditions again.
func (b *mailbox) wakeProbes() {
	for _, w := range b.probes {
		w.wake()
	}
}

// wakePosts wakes the waiters of posted receives, so that they check their conditions again.
func (b *mailbox) wakePosts() {
	for r := range b.Posts() {
		requestOf(r).waiter.wake()
	}
}

// endPost withdraws posted receive r, which fails with err.
func (b *mailbox) endPost(r *Request, err error) {
	b.Withdraw(&r.Recv)
	r.err = err
	r.finish()
}

// requestOf returns the request that contains r, or nil if r is nil.
func requestOf(r *match.Recv) *Request {
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
