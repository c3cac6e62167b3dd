package mpitest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A Test holds one promise. All ranks of a world run it.
type Test struct {
	Name     string
	Min      int  // ranks that it needs
	Replicas bool // may run with several replicas of each rank
	Run      func(*mpj.World) error
}

// Suite returns all tests, in the order of the standard's chapters.
func Suite() []Test {
	return slices.Concat(
		sends, receives, probes, requests, persistents,
		datatypes,
		collectives, vectors, reductions, nonblocking,
		groups, comms, intercomms, attributes,
		topologies, neighbours,
		environment, threads, misuses,
	)
}

// Run runs those of the tests that fit w, in order, and returns the first
// error. replicated says that each rank of w runs more than once. passed, unless
// nil, is told the name of each test that has ended well at all ranks.
func Run(w *mpj.World, replicated bool, tests []Test, passed func(name string)) error {
	for _, t := range tests {
		if w.Size() < t.Min || replicated && !t.Replicas {
			continue
		}
		if err := t.Run(w); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if err := mpj.Barrier(w.Comm); err != nil {
			return fmt.Errorf("after %s: %w", t.Name, err)
		}
		if passed != nil {
			passed(t.Name)
		}
	}
	return nil
}

// equal returns an error that says what differs, if got is not want.
func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// same is equal for slices.
func same[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, short(got), short(want))
	}
	return nil
}

// short returns what an error shows of a slice.
func short[T any](s []T) []T { return s[:min(len(s), 20)] }

// fails returns an error unless err is of the class.
func fails(what string, err error, class mpj.Class) error {
	if !errors.Is(err, class) {
		return fmt.Errorf("%s: got error %s, want one of the class %q", what, fmt.Sprint(err), class.Error())
	}
	return nil
}

// right and left return the neighbours in the ring of all ranks.
func right(c *mpj.Comm) int { return (c.Rank() + 1) % c.Size() }
func left(c *mpj.Comm) int  { return (c.Rank() + c.Size() - 1) % c.Size() }

// numbers returns from, from+1, ... of the given length.
func numbers[T mpj.Ordered](from, length int) []T {
	s := make([]T, length)
	for i := range s {
		s[i] = T(from + i)
	}
	return s
}
