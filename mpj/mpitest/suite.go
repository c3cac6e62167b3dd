package mpitest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A Test checks one requirement. All ranks of a world run it.
type Test struct {
	Name     string
	Min      int  // least number of ranks
	Replicas bool // may run with several replicas of each rank
	Run      func(*mpj.World) error
}

// Suite returns all tests, in the order of the standard's chapters.
func Suite() []Test {
	return slices.Concat(
		sends, receives, probes, requests, persistents,
		datatypes,
		collectives, vectors, reductions, items, nonblocking,
		groups, comms, intercomms, attributes, infos,
		topologies, neighbours,
		environment, threads, misuses,
	)
}

// Run runs the tests that w has enough ranks for, in order, and returns the first error. replicated
// states that each rank of w has several replicas. If passed is not nil, Run calls it with the name
// of each test that has succeeded at all ranks.
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

// equal returns an error that describes the difference unless got equals want.
func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// same is like equal, but for slices.
func same[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, short(got), short(want))
	}
	return nil
}

// short returns the part of a slice that an error shows.
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

// numbers returns a slice of the given length with from, from+1, ...
func numbers[T mpj.Ordered](from, length int) []T {
	s := make([]T, length)
	for i := range s {
		s[i] = T(from + i)
	}
	return s
}
