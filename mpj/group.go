package mpj

import (
	"fmt"
	"math"
	"slices"
)

// A Group is an ordered set of processes: the ranks of a communicator, or a subset of them, from
// which a communicator can be created. It is an immutable value. Group operations need no
// communication. The zero Group is GroupEmpty.
type Group struct {
	members []int // world ranks, without duplicates
	self    int   // world rank of this process; ignored without members
}

// GroupEmpty is the group without members.
var GroupEmpty Group

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

// String returns the name of the constant.
func (c Comparison) String() string {
	names := [...]string{"Identical", "Congruent", "Similar", "Unequal"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("Comparison(%d)", int(c))
	}
	return names[c]
}

// Size returns the number of members.
func (g Group) Size() int { return len(g.members) }

// Rank returns the rank of this process in g, or Undefined if the process is not a member.
func (g Group) Rank() int {
	if i := slices.Index(g.members, g.self); i >= 0 {
		return i
	}
	return Undefined
}

// Incl returns the group of the members with the given ranks, in the given order.
func (g Group) Incl(ranks []int) (Group, error) {
	if _, err := g.chosen("Group.Incl", ranks); err != nil {
		return Group{}, err
	}
	return g.incl(ranks), nil
}

// Excl returns the group of the members other than those with the given ranks.
func (g Group) Excl(ranks []int) (Group, error) {
	out, err := g.chosen("Group.Excl", ranks)
	if err != nil {
		return Group{}, err
	}
	return g.excl(out), nil
}

// A Range represents the ranks First, First+Stride, ... up to Last. A negative stride counts down.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl for all ranks in the ranges, one range after the other.
func (g Group) RangeIncl(ranges []Range) (Group, error) {
	ranks, err := g.expand("Group.RangeIncl", ranges)
	if err != nil {
		return Group{}, err
	}
	if _, err := g.chosen("Group.RangeIncl", ranks); err != nil {
		return Group{}, err
	}
	return g.incl(ranks), nil
}

// RangeExcl is Excl for all ranks in the ranges.
func (g Group) RangeExcl(ranges []Range) (Group, error) {
	ranks, err := g.expand("Group.RangeExcl", ranges)
	if err != nil {
		return Group{}, err
	}
	out, err := g.chosen("Group.RangeExcl", ranks)
	if err != nil {
		return Group{}, err
	}
	return g.excl(out), nil
}

// Union returns the members of g, followed by those of h that are not in g.
func (g Group) Union(h Group) Group {
	in := g.index()
	u := Group{members: slices.Clone(g.members), self: g.self}
	if g.Size() == 0 {
		u.self = h.self
	}
	for _, m := range h.members {
		if _, ok := in[m]; !ok {
			u.members = append(u.members, m)
		}
	}
	return u
}

// Intersection returns the members of g that are also in h, in the order of g.
func (g Group) Intersection(h Group) Group {
	in := h.index()
	return g.where(func(m int) bool { _, ok := in[m]; return ok })
}

// Difference returns the members of g that are not in h, in the order of g.
func (g Group) Difference(h Group) Group {
	in := h.index()
	return g.where(func(m int) bool { _, ok := in[m]; return !ok })
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
			return nil, failf(ErrRank, "Group.TranslateRanks", "ranks[%d] is %d in a group of %d", i, r, g.Size())
		}
		at, ok := in[g.members[r]]
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
	case slices.Equal(g.members, h.members):
		return Identical
	case g.Size() == h.Size() && g.Difference(h).Size() == 0:
		return Similar
	}
	return Unequal
}

// index maps the world rank of each member to its rank in g.
func (g Group) index() map[int]int {
	in := make(map[int]int, len(g.members))
	for i, m := range g.members {
		in[m] = i
	}
	return in
}

func (g Group) where(keep func(member int) bool) Group {
	kept := Group{self: g.self}
	for _, m := range g.members {
		if keep(m) {
			kept.members = append(kept.members, m)
		}
	}
	return kept
}

func (g Group) incl(ranks []int) Group {
	chosen := Group{members: make([]int, len(ranks)), self: g.self}
	for i, r := range ranks {
		chosen.members[i] = g.members[r]
	}
	return chosen
}

func (g Group) excl(out []bool) Group {
	kept := Group{self: g.self}
	for i, m := range g.members {
		if !out[i] {
			kept.members = append(kept.members, m)
		}
	}
	return kept
}

// chosen returns, for each rank of g, whether it is among ranks. It returns an error of op if ranks
// contains a rank that is not in g, or a duplicate.
func (g Group) chosen(op string, ranks []int) ([]bool, error) {
	in := make([]bool, g.Size())
	for i, r := range ranks {
		if r < 0 || r >= g.Size() {
			return nil, failf(ErrRank, op, "ranks[%d] is %d in a group of %d", i, r, g.Size())
		}
		if in[r] {
			return nil, failf(ErrRank, op, "rank %d is given twice", r)
		}
		in[r] = true
	}
	return in, nil
}

// expand returns the ranks in the ranges. It stops at the first rank that is not in g, so that a
// large range does not take long.
func (g Group) expand(op string, ranges []Range) ([]int, error) {
	var ranks []int
	for _, r := range ranges {
		if r.Stride == 0 {
			return nil, failf(ErrArg, op, "%+v has no stride", r)
		}
		for at := r.First; r.Stride > 0 && at <= r.Last || r.Stride < 0 && at >= r.Last; at += r.Stride {
			if at < 0 || at >= g.Size() {
				return nil, failf(ErrRank, op, "%+v names rank %d of a group of %d", r, at, g.Size())
			}
			ranks = append(ranks, at)
			if r.Stride > math.MaxInt-at {
				break // the next value would overflow
			}
		}
	}
	return ranks, nil
}
