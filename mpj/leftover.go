package mpj

import (
	"cmp"
	"errors"
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
// and requests. A collective that has failed elsewhere comes first, in the words
// and with the class that ranks get that wait in it.
func (w *World) leftOver() error {
	failures, messages := w.unmatched()
	requests := w.ledger.all()
	var parts []string
	if len(messages) > 0 {
		parts = append(parts, numbered(messages, "messages"))
	}
	if len(requests) > 0 {
		parts = append(parts, numbered(requests, "requests"))
	}
	left := strings.Join(parts, "; ")
	if len(failures) == 0 {
		if left == "" {
			return nil
		}
		return failf(ErrPending, "Finalize", "%s", left)
	}
	first := slices.MinFunc(failures, func(a, b failure) int { return cmp.Compare(a.rank, b.rank) })
	if left != "" {
		return failf(first.class, "Finalize", "%s; %s: %s", first.text, ErrPending, left)
	}
	return failf(first.class, "Finalize", "%s", first.text)
}

// A failure is a collective that has failed first at another rank.
type failure struct {
	rank  int
	class Class
	text  string
}

// failed returns the failure of which m, which came from a rank of the world, is news.
func (c *Comm) failed(m words.Unmatched) failure {
	err := collective.LeftNews(c.engine, m.Context, m.Status.Source)
	f := failure{rank: c.rankOf(m.Status.Source), class: ErrOther, text: fmt.Sprintf("in communicator %q %v", c.Name(), err)}
	if spoiled, ok := errors.AsType[*collective.SpoiledError](err); ok {
		f.rank, f.class = spoiled.Rank, classOfCause(spoiled.Cause)
	}
	return f
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

// unmatched describes the messages that were never received. One of a
// collective is there when the ranks did not call the same ones, or one failed.
func (w *World) unmatched() (failures []failure, words []string) {
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
			switch collective.NewsOf(m.Status.Tag) {
			case collective.Failure:
				failures = append(failures, c.failed(m))
			case collective.Nothing:
				words = append(words, fmt.Sprintf("%d bytes of a %v that rank %d calls in communicator %q and this rank does not",
					s.Size, collective.Call(s.Tag), s.Source, c.Name()))
			}
		}
	}
	return failures, words
}
