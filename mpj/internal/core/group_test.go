package core

import (
	"slices"
	"testing"
)

// TestGroupsHaveTheOrderOfTheStandard checks the members and the order of each result, and the rank of this process.
func TestGroupsHaveTheOrderOfTheStandard(t *testing.T) {
	g, h := Group{Members: []int{4, 2, 7}, Self: 2}, Group{Members: []int{7, 1, 2}, Self: 2}
	must := func(g Group, err error) Group {
		if err != nil {
			t.Error(err)
		}
		return g
	}
	cases := []struct {
		name    string
		group   Group
		members []int
		rank    int
	}{
		{"union", g.Union(h), []int{4, 2, 7, 1}, 1},
		{"union with no members", Group{}.Union(h), []int{7, 1, 2}, 2},
		{"intersection", g.Intersection(h), []int{2, 7}, 0},
		{"difference", g.Difference(h), []int{4}, Undefined},
		{"those that are odd", g.Where(func(m int) bool { return m%2 == 1 }), []int{7}, Undefined},
		{"Incl", must(g.Incl([]int{2, 1})), []int{7, 2}, 1},
		{"Excl", must(g.Excl([]int{0})), []int{2, 7}, 0},
		{"RangeIncl", must(g.RangeIncl([]Range{{2, 0, -2}})), []int{7, 4}, Undefined},
		{"RangeExcl", must(g.RangeExcl([]Range{{0, 2, 2}})), []int{2}, 0},
	}
	for _, c := range cases {
		if !slices.Equal(c.group.Members, c.members) || c.group.Rank() != c.rank {
			t.Errorf("%s: got %v, rank %d; want %v, rank %d", c.name, c.group.Members, c.group.Rank(), c.members, c.rank)
		}
	}
}

func TestGroupsAreCompared(t *testing.T) {
	g := Group{Members: []int{4, 2, 7}}
	for _, c := range []struct {
		members []int
		want    Comparison
	}{
		{[]int{4, 2, 7}, Identical}, {[]int{7, 4, 2}, Similar}, {[]int{4, 2}, Unequal}, {[]int{4, 2, 8}, Unequal},
	} {
		if got := g.Compare(Group{Members: c.members}); got != c.want {
			t.Errorf("%v: got %d, want %d", c.members, got, c.want)
		}
	}
}

func TestRanksAreTranslated(t *testing.T) {
	g, h := Group{Members: []int{4, 2, 7}}, Group{Members: []int{7, 1, 2}}
	got, err := g.TranslateRanks([]int{0, 1, 2, ProcNull}, h)
	if want := []int{Undefined, 2, 0, ProcNull}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
