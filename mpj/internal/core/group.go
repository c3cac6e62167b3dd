package core

import (
	"math"
	"slices"
)

// A Group is an ordered set of processes. It is an immutable value; its operations need no
// communication. The zero Group has no members.
type Group struct {
	Members []int // world ranks, without duplicates
	Self    int   // world rank of this process; ignored without members
}

// A Comparison is the degree of similarity of two groups or communicators.
type Comparison int

const (
	// Identical groups have the same members in the same order; identical communicators are the same
	// communicator.
	Identical Comparison = iota
	// Congruent communicators have identical groups and different contexts.
	Congruent
	// Similar groups or communicators have the same members in a different order.
	Similar
	// Unequal groups or communicators have different members.
	Unequal
)

// Size returns the number of members.
func (g Group) Size() int { return len(g.Members) }

// Rank returns the rank of this process in g, or Undefined if the process is not a member.
func (g Group) Rank() int {
	if i := slices.Index(g.Members, g.Self); i >= 0 {
		return i
	}
	return Undefined
}

// Incl returns the group of the members with the given ranks, in the given order.
func (g Group) Incl(ranks []int) (Group, error) {
	if _, err := g.chosen(ranks); err != nil {
		return Group{}, err
	}
	chosen := Group{Members: make([]int, len(ranks)), Self: g.Self}
	for i, r := range ranks {
		chosen.Members[i] = g.Members[r]
	}
	return chosen, nil
}

// Excl returns the group of the members other than those with the given ranks.
func (g Group) Excl(ranks []int) (Group, error) {
	out, err := g.chosen(ranks)
	if err != nil {
		return Group{}, err
	}
	kept := Group{Self: g.Self}
	for i, m := range g.Members {
		if !out[i] {
			kept.Members = append(kept.Members, m)
		}
	}
	return kept, nil
}

// A Range represents the ranks First, First+Stride, ... up to Last. A negative stride counts down.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl for all ranks in the ranges, one range after the other.
func (g Group) RangeIncl(ranges []Range) (Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return Group{}, err
	}
	return g.Incl(ranks)
}

// RangeExcl is Excl for all ranks in the ranges.
func (g Group) RangeExcl(ranges []Range) (Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return Group{}, err
	}
	return g.Excl(ranks)
}

// Union returns the members of g, followed by those of h that are not in g.
func (g Group) Union(h Group) Group {
	in := g.index()
	u := Group{Members: slices.Clone(g.Members), Self: g.Self}
	if g.Size() == 0 {
		u.Self = h.Self
	}
	for _, m := range h.Members {
		if _, ok := in[m]; !ok {
			u.Members = append(u.Members, m)
		}
	}
	return u
}

// Intersection returns the members of g that are also in h, in the order of g.
func (g Group) Intersection(h Group) Group {
	in := h.index()
	return g.Where(func(m int) bool { _, ok := in[m]; return ok })
}

// Difference returns the members of g that are not in h, in the order of g.
func (g Group) Difference(h Group) Group {
	in := h.index()
	return g.Where(func(m int) bool { _, ok := in[m]; return !ok })
}

// Where returns the members of g for which keep, called with a world rank, returns true.
func (g Group) Where(keep func(member int) bool) Group {
	kept := Group{Self: g.Self}
	for _, m := range g.Members {
		if keep(m) {
			kept.Members = append(kept.Members, m)
		}
	}
	return kept
}

// TranslateRanks returns, for each of the given ranks in g, the rank of the same process in h. The
// result is Undefined for a process that is not a member of h, and ProcNull for ProcNull.
func (g Group) TranslateRanks(ranks []int, h Group) ([]int, error) {
	in := h.index()
	translated := make([]int, len(ranks))
	for i, r := range ranks {
		if r == ProcNull {
			translated[i] = ProcNull
			continue
		}
		if r < 0 || r >= g.Size() {
			return nil, Failf(ErrRank, "ranks[%d] is %d in a group of %d", i, r, g.Size())
		}
		at, ok := in[g.Members[r]]
		if !ok {
			at = Undefined
		}
		translated[i] = at
	}
	return translated, nil
}

// Compare reports whether g and h are Identical, Similar or Unequal.
func (g Group) Compare(h Group) Comparison {
	switch {
	case slices.Equal(g.Members, h.Members):
		return Identical
	case g.Size() == h.Size() && g.Difference(h).Size() == 0:
		return Similar
	}
	return Unequal
}

// index maps the world rank of each member to its rank in g.
func (g Group) index() map[int]int {
	in := make(map[int]int, len(g.Members))
	for i, m := range g.Members {
		in[m] = i
	}
	return in
}

// chosen returns, for each rank of g, whether it is among ranks. It returns an error if ranks
// contains a rank that is not in g, or a duplicate.
func (g Group) chosen(ranks []int) ([]bool, error) {
	in := make([]bool, g.Size())
	for i, r := range ranks {
		if r < 0 || r >= g.Size() {
			return nil, Failf(ErrRank, "ranks[%d] is %d in a group of %d", i, r, g.Size())
		}
		if in[r] {
			return nil, Failf(ErrRank, "rank %d is given twice", r)
		}
		in[r] = true
	}
	return in, nil
}

// expand returns the ranks in the ranges. It stops at the first rank that is not in g, so that a
// large range does not take long.
func (g Group) expand(ranges []Range) ([]int, error) {
	var ranks []int
	for _, r := range ranges {
		if r.Stride == 0 {
			return nil, Failf(ErrArg, "%+v has no stride", r)
		}
		for at := r.First; r.Stride > 0 && at <= r.Last || r.Stride < 0 && at >= r.Last; at += r.Stride {
			if at < 0 || at >= g.Size() {
				return nil, Failf(ErrRank, "%+v names rank %d of a group of %d", r, at, g.Size())
			}
			ranks = append(ranks, at)
			if r.Stride > math.MaxInt-at {
				break // the next value would overflow
			}
		}
	}
	return ranks, nil
}
