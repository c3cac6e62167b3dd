package mpj

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// groupOf returns the group with the given members, in a process with world rank 2.
func groupOf(members ...int) Group { return Group{members: members, self: 2} }

// TestGroupOperationsMatchThoseOfSets checks that group operations are set operations whose results
// have MPI's order.
func TestGroupOperationsMatchThoseOfSets(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		g := groupOf(random.Perm(8)[:random.IntN(9)]...)
		h := groupOf(random.Perm(8)[:random.IntN(9)]...)
		both, onlyG, onlyH := set{}, set{}, set{}
		for m := range 8 {
			inG, inH := slices.Contains(g.members, m), slices.Contains(h.members, m)
			both[m], onlyG[m], onlyH[m] = inG && inH, inG && !inH, inH && !inG
		}
		err := first(
			want("union", g.Union(h).members, slices.Concat(g.members, onlyH.of(h))),
			want("intersection", g.Intersection(h).members, both.of(g)),
			want("difference", g.Difference(h).members, onlyG.of(g)),
			compares(g.Union(h), h.Union(g), Similar),
			compares(g.Intersection(h), h.Intersection(g), Similar),
			compares(g.Difference(h).Union(g.Intersection(h)), g, Similar),
			compares(g, g.Union(g), Identical),
			compares(g.Difference(g), GroupEmpty, Identical),
		)
		if err != nil {
			t.Fatalf("seed %d: g %v, h %v: %v", seed, g.members, h.members, err)
		}
	}
}

type set map[int]bool

// of returns the members of g that are in s, in order.
func (s set) of(g Group) []int {
	return slices.DeleteFunc(slices.Clone(g.members), func(m int) bool { return !s[m] })
}

// compares checks that g and h are at least as similar as worst.
func compares(g, h Group, worst Comparison) error {
	if got := g.Compare(h); got > worst || got != h.Compare(g) {
		return fmt.Errorf("%v and %v are %v, want %v", g.members, h.members, got, worst)
	}
	return nil
}

func TestGroupChoices(t *testing.T) {
	g := groupOf(5, 3, 2, 7, 0, 1)
	cases := []struct {
		name string
		make func() (Group, error)
		want []int
		rank int
	}{
		{"incl", func() (Group, error) { return g.Incl([]int{3, 2, 0}) }, []int{7, 2, 5}, 1},
		{"incl none", func() (Group, error) { return g.Incl(nil) }, []int{}, Undefined},
		{"excl", func() (Group, error) { return g.Excl([]int{0, 2}) }, []int{3, 7, 0, 1}, Undefined},
		{"excl none", func() (Group, error) { return g.Excl(nil) }, g.members, 2},
		{"range up", func() (Group, error) { return g.RangeIncl([]Range{{0, 5, 2}}) }, []int{5, 2, 0}, 1},
		{"range down", func() (Group, error) { return g.RangeIncl([]Range{{3, 0, -2}, {4, 4, 1}}) }, []int{7, 3, 0}, Undefined},
		{"range that steps over its last rank", func() (Group, error) { return g.RangeIncl([]Range{{1, 4, 2}}) }, []int{3, 7}, Undefined},
		{"range with the longest stride", func() (Group, error) { return g.RangeIncl([]Range{{1, 2, math.MaxInt}}) }, []int{3}, Undefined},
		{"empty range", func() (Group, error) { return g.RangeIncl([]Range{{3, 1, 1}}) }, nil, Undefined},
		{"range excl", func() (Group, error) { return g.RangeExcl([]Range{{5, 3, -1}, {0, 1, 1}}) }, []int{2}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.make()
			if err != nil || !slices.Equal(got.members, c.want) || got.Rank() != c.rank {
				t.Errorf("got %v, rank %d, %v; want %v, rank %d", got.members, got.Rank(), err, c.want, c.rank)
			}
		})
	}
}

func TestWrongGroupArgumentsAreNamed(t *testing.T) {
	g := groupOf(5, 3, 2)
	cases := []struct {
		name  string
		make  func() (Group, error)
		class Class
	}{
		{"too large", func() (Group, error) { return g.Incl([]int{3}) }, ErrRank},
		{"negative", func() (Group, error) { return g.Excl([]int{-1}) }, ErrRank},
		{"twice", func() (Group, error) { return g.Incl([]int{1, 1}) }, ErrRank},
		{"overlapping ranges", func() (Group, error) { return g.RangeIncl([]Range{{0, 2, 1}, {2, 0, -1}}) }, ErrRank},
		{"no stride", func() (Group, error) { return g.RangeIncl([]Range{{0, 2, 0}}) }, ErrArg},
		{"endless range", func() (Group, error) { return g.RangeExcl([]Range{{0, 1 << 62, 1}}) }, ErrRank},
	}
	for _, c := range cases {
		if _, err := c.make(); !errors.Is(err, c.class) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.class)
		}
	}
}

func TestTranslateRanks(t *testing.T) {
	got, err := groupOf(5, 3, 2).TranslateRanks([]int{2, 0, 1, ProcNull}, groupOf(2, 7, 3))
	if err := first(err, want("TranslateRanks", got, []int{0, Undefined, 2, ProcNull})); err != nil {
		t.Error(err)
	}
	if _, err := groupOf(5).TranslateRanks([]int{1}, groupOf(5)); !errors.Is(err, ErrRank) {
		t.Errorf("got %v, want ErrRank", err)
	}
}

func TestGroupOfAWorldIsItsRanks(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(w *World) error {
		g := w.Group()
		return first(want("members", g.members, []int{0, 1, 2}), want("rank", []int{g.Rank()}, []int{w.Rank()}))
	})
	if err != nil {
		t.Error(err)
	}
}
