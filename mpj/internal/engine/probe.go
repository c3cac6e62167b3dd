package engine

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// Probe waits for a message that a receive from source with tag would take, and describes it. With a
// named source, the message is the same at all replicas; with AnySource, the result is a decision.
func (e *Engine) Probe(context uint32, source int, tag int32) (Status, error) {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	b := e.mailbox(context)
	b.probes = append(b.probes, w)
	defer b.forgetProbe(w)
	w.probe = Call{Kind: Probing, Context: context, Peer: source, Tag: tag}
	if source != AnySource {
		var found Status
		there := false
		err := e.await(w, func() bool {
			var m *message
			if m, there = b.Probe(source, tag); there {
				found = StatusOf(*m)
			}
			return there || e.finished.over(source)
		})
		if err == nil && !there {
			err = &engineapi.FinalizedError{Rank: source}
		}
		return found, err
	}
	w.choice = choice{kind: probedStatus, waits: true, box: b, source: source, tag: tag}
	values, err := e.transport.Decide(context, w)
	if err != nil || len(values) != 3 {
		return Status{}, orMalformed(err)
	}
	return statusFrom(values), nil
}

// Iprobe describes the message that Probe would describe now, if any. The result is a decision even
// with a named source.
func (e *Engine) Iprobe(context uint32, source int, tag int32) (s Status, ok bool, err error) {
	defer func() { yieldUnless(ok) }()
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	b := e.mailbox(context)
	w.choice = choice{kind: probedStatus, box: b, source: source, tag: tag}
	values, err := e.transport.Decide(context, w)
	if err != nil || len(values) == 0 {
		return Status{}, false, err
	}
	if len(values) != 3 {
		return Status{}, false, ErrMalformed
	}
	return statusFrom(values), true, nil
}

func (b *Mailbox) forgetProbe(w *Waiter) {
	b.probes = slices.DeleteFunc(b.probes, func(p *Waiter) bool { return p == w })
}
