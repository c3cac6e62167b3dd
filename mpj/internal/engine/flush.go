package engine

import "github.com/p2pmpi/p2pmpi/internal/view"

// Flush waits until every message of this process has reached its destination. The program receives
// no more messages from now on. Flush refuses the messages announced to this process, which ends
// their sends. So two processes do not wait for each other to receive messages that neither of them
// receives.
func (e *Engine) Flush() error {
	w := waiters.Get().(*waiter)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.put()
	e.flush = w
	defer func() { e.flush = nil }()
	if e.protected != nil {
		return e.protected.finish.run(w)
	}
	e.ending = true
	for _, b := range e.mailboxes {
		e.refuseAll(b)
	}
	return e.await(w, func() bool {
		w.requests = e.announcements()
		return e.err == nil && e.queued == 0 && e.bodies == 0
	})
}

// announcements returns the announced sends that wait for their receives.
func (e *Engine) announcements() (all []*Request) {
	for _, o := range e.outlets {
		if o == nil {
			continue
		}
		for _, r := range o.announced {
			all = append(all, r)
		}
	}
	return all
}

// refuseAll refuses the announced messages in b.
func (e *Engine) refuseAll(b *mailbox) {
	for i := 0; i < len(b.unexpected); {
		if !b.unexpected[i].announced {
			i++
			continue
		}
		e.refuse(b.removeMessage(i))
	}
}

// refuse tells the sender of an announced message that it will not be received, and records the
// message for Unmatched.
func (e *Engine) refuse(m message) {
	e.refused = append(e.refused, Unmatched{Context: m.Context, Status: statusOf(m)})
	if m.sender != nil {
		e.sentToSelf(m.sender)
		return
	}
	e.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
}
