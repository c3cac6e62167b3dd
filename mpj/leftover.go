package mpj

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// Finalize reports the leftovers of the program: messages that it never received, and, with
// P2PMPI_CHECK, requests that it never waited for.

// leftOver returns an error that lists the remaining messages and requests of this process. It
// begins with a collective that failed at another rank, with the text and class that ranks waiting
// in that collective get.
func (w *World) leftOver() error {
	failures, messages := w.unmatched()
	requests := w.base.Process().Pending()
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

// A failure describes a collective that failed first at another rank.
type failure struct {
	rank  int
	class Class
	text  string
}

// failureOf returns the failure in c that m reports.
func failureOf(c *Comm, m engineapi.Unmatched) failure {
	err := collective.PendingReason(c.engine(), m.Context, m.Status.Source)
	f := failure{rank: c.rankOf(m.Status.Source), class: ErrOther, text: fmt.Sprintf("in communicator %q %v", c.Name(), err)}
	if failed, ok := errors.AsType[*collective.FailedError](err); ok {
		f.rank, f.class = failed.Rank, Class(core.ClassOfCause(failed.Cause).Error())
	}
	return f
}

// namedMost bounds the number of entries listed per kind.
const namedMost = 5

func numbered(words []string, what string) string {
	s := fmt.Sprintf("%d %s: %s", len(words), what, strings.Join(words[:min(len(words), namedMost)], "; "))
	if len(words) > namedMost {
		s += "; ..."
	}
	return s
}

// unmatched describes the messages that were never received. A message of a collective remains if
// the ranks did not call the same collectives, or if a collective failed.
func (w *World) unmatched() (failures []failure, words []string) {
	for _, m := range w.engine().Unmatched() {
		slot := m.Context & 0xff
		c := fromBase(w.base.Process().Comm(m.Context >> 8))
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
		case slot == collectiveSlot || slot >= core.OperationSlot && c.TopoTest() == NoTopology:
			switch collective.RoleOf(m.Status.Tag) {
			case collective.Failure:
				failures = append(failures, failureOf(c, m))
			case collective.Nothing:
				words = append(words, fmt.Sprintf("%d bytes of a %v that rank %d calls in communicator %q and this rank does not",
					s.Size, collective.Call(s.Tag), s.Source, c.Name()))
			}
		}
	}
	return failures, words
}
