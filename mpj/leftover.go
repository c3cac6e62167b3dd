package mpj

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// What a program has forgotten when it calls Finalize: messages that it never
// received, and, with P2PMPI_CHECK, requests that it never waited for.

// A ledger has the active requests of a world, with checks.
type ledger struct {
	mu      sync.Mutex
	count   int
	entries map[*Request]entry
}

// An entry says in words what a request is for; number is in order of their
// beginnings.
type entry struct {
	number int
	words  string
}

// note takes note of r, which has begun. said is its arguments in words.
func (r *Request) note(said string) {
	l := &r.comm.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[*Request]entry)
	}
	l.count++
	words := said
	if at := callerOf(); at != "" {
		words += " at " + at
	}
	l.entries[r] = entry{l.count, words}
}

// settle forgets r, which is waited for or freed.
func (r *Request) settle() {
	if !r.comm.world.checks {
		return
	}
	l := &r.comm.world.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, r)
}

// all describes the requests that are active, in order.
func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []entry
	for _, e := range l.entries {
		left = append(left, e)
	}
	slices.SortFunc(left, func(a, b entry) int { return a.number - b.number })
	words := make([]string, len(left))
	for i, e := range left {
		words[i] = e.words
	}
	return words
}

// leftOver returns an error that names what is left of this process's messages
// and requests.
func (w *World) leftOver() error {
	messages, requests := w.unmatched(), w.ledger.all()
	var parts []string
	if len(messages) > 0 {
		parts = append(parts, numbered(messages, "messages"))
	}
	if len(requests) > 0 {
		parts = append(parts, numbered(requests, "requests"))
	}
	if parts == nil {
		return nil
	}
	return failf(ErrPending, "Finalize", "%s", strings.Join(parts, "; "))
}

// namedMost bounds what is named of one kind.
const namedMost = 5

func numbered(words []string, what string) string {
	s := fmt.Sprintf("%d %s: %s", len(words), what, strings.Join(words[:min(len(words), namedMost)], "; "))
	if len(words) > namedMost {
		s += "; ..."
	}
	return s
}

// leftOfCollective describes m, a message of a collective, unless another one
// says it.
func (c *Comm) leftOfCollective(m words.Unmatched) []string {
	switch collective.NewsOf(m.Status.Tag) {
	case collective.Failure:
		news := collective.LeftNews(c.engine, m.Context, m.Status.Source)
		return []string{fmt.Sprintf("the news in communicator %q that %v", c.Name(), news)}
	case collective.Reason:
		return nil
	}
	s := c.statusOf(m.Status)
	return []string{fmt.Sprintf("%d bytes of a %v that rank %d calls in communicator %q and this rank does not", s.Size, collective.Call(s.Tag), s.Source, c.Name())}
}

// unmatched describes the messages that were never received. One of a
// collective is there when the ranks did not call the same ones.
func (w *World) unmatched() (words []string) {
	for _, m := range w.engine.Unmatched() {
		slot := m.Context & 0xff
		c := w.identities.of(m.Context >> 8)
		if c == nil {
			if slot == messageSlot && m.Context != 0 {
				words = append(words, fmt.Sprintf("%d bytes from rank %d of the world with tag %d in a communicator that was freed", m.Status.Size, m.Status.Source, m.Status.Tag))
			}
			continue
		}
		s := c.statusOf(m.Status)
		switch {
		case slot == messageSlot:
			words = append(words, fmt.Sprintf("%d bytes from rank %d with tag %d in communicator %q", s.Size, s.Source, s.Tag, c.Name()))
		case slot == collectiveSlot || slot >= operationSlot && c.topology == nil:
			words = append(words, c.leftOfCollective(m)...)
		}
	}
	return words
}
