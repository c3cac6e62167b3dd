package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
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
func (g Group) Rank() int { return g.core().Rank() }

// Incl returns the group of the members with the given ranks, in the given order.
func (g Group) Incl(ranks []int) (Group, error) {
	h, err := g.core().Incl(ranks)
	return fromCore(h), errorOf("Group.Incl", err)
}

// Excl returns the group of the members other than those with the given ranks.
func (g Group) Excl(ranks []int) (Group, error) {
	h, err := g.core().Excl(ranks)
	return fromCore(h), errorOf("Group.Excl", err)
}

// A Range represents the ranks First, First+Stride, ... up to Last. A negative stride counts down.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl for all ranks in the ranges, one range after the other.
func (g Group) RangeIncl(ranges []Range) (Group, error) {
	h, err := g.core().RangeIncl(coreRanges(ranges))
	return fromCore(h), errorOf("Group.RangeIncl", err)
}

// RangeExcl is Excl for all ranks in the ranges.
func (g Group) RangeExcl(ranges []Range) (Group, error) {
	h, err := g.core().RangeExcl(coreRanges(ranges))
	return fromCore(h), errorOf("Group.RangeExcl", err)
}

// Union returns the members of g, followed by those of h that are not in g.
func (g Group) Union(h Group) Group { return fromCore(g.core().Union(h.core())) }

// Intersection returns the members of g that are also in h, in the order of g.
func (g Group) Intersection(h Group) Group { return fromCore(g.core().Intersection(h.core())) }

// Difference returns the members of g that are not in h, in the order of g.
func (g Group) Difference(h Group) Group { return fromCore(g.core().Difference(h.core())) }

// TranslateRanks returns, for each of the given ranks in g, the rank of the same process in h. The
// result is Undefined for a process that is not a member of h, and ProcNull for ProcNull.
func (g Group) TranslateRanks(ranks []int, h Group) ([]int, error) {
	translated, err := g.core().TranslateRanks(ranks, h.core())
	return translated, errorOf("Group.TranslateRanks", err)
}

// Compare reports whether g and h are Identical, Similar or Unequal.
func (g Group) Compare(h Group) Comparison { return Comparison(g.core().Compare(h.core())) }

// core returns g as a group of package core.
func (g Group) core() core.Group { return core.Group{Members: g.members, Self: g.self} }

// fromCore returns a group of package core as a Group.
func fromCore(g core.Group) Group { return Group{members: g.Members, self: g.Self} }

// coreRanges returns ranges as those of package core.
func coreRanges(ranges []Range) []core.Range {
	s := make([]core.Range, len(ranges))
	for i, r := range ranges {
		s[i] = core.Range(r)
	}
	return s
}
