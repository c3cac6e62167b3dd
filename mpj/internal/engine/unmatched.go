package engine

import (
	"cmp"
	"slices"
)

// Unmatched returns the messages that have arrived and that no receive has taken, by context and in
// order of arrival. They are the messages that a program has not received when it ends.
func (e *Engine) Unmatched() []Unmatched {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns.poller.advance()
	var all []Unmatched
	if refuser, ok := e.transport.(Refuser); ok {
		all = slices.Clone(refuser.Refused())
	}
	for context, b := range e.mailboxes {
		for m := range b.Messages() {
			all = append(all, Unmatched{Context: context, Status: StatusOf(*m)})
		}
	}
	slices.SortStableFunc(all, func(a, b Unmatched) int { return cmp.Compare(a.Context, b.Context) })
	return all
}
