package core

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// TestInvalidArgumentsAreRefused checks the class of each refused argument, and that the error names it.
func TestInvalidArgumentsAreRefused(t *testing.T) {
	g := Group{Members: []int{4, 2, 7}, Self: 2}
	double := layout.Basic(8)
	buffer := func(origin, count int) error {
		return Buffer{Memory: make([]byte, 32), Type: double, Origin: origin, Count: count}.Check()
	}
	cases := []struct {
		name  string
		err   error
		class Class // 0 for an error of package layout
		says  string
	}{
		{"Incl of a rank outside", second(g.Incl([]int{0, 3})), ErrRank, "ranks[1] is 3 in a group of 3"},
		{"Incl of a negative rank", second(g.Incl([]int{-1})), ErrRank, "ranks[0] is -1"},
		{"Incl of a rank twice", second(g.Incl([]int{1, 1})), ErrRank, "rank 1 is given twice"},
		{"Excl of a rank outside", second(g.Excl([]int{3})), ErrRank, "ranks[0] is 3"},
		{"Excl of a rank twice", second(g.Excl([]int{0, 0})), ErrRank, "rank 0 is given twice"},
		{"a range without a stride", second(g.RangeIncl([]Range{{0, 2, 0}})), ErrArg, "{First:0 Last:2 Stride:0} has no stride"},
		{"a range beyond the group", second(g.RangeIncl([]Range{{0, math.MaxInt, 1}})), ErrRank, "names rank 3 of a group of 3"},
		{"a range below the group", second(g.RangeExcl([]Range{{2, math.MinInt, -1}})), ErrRank, "names rank -1"},
		{"ranges that overlap", second(g.RangeIncl([]Range{{0, 1, 1}, {1, 2, 1}})), ErrRank, "rank 1 is given twice"},
		{"ranges that overlap, left out", second(g.RangeExcl([]Range{{0, 1, 1}, {1, 2, 1}})), ErrRank, "rank 1 is given twice"},
		{"translation of a rank outside", second(g.TranslateRanks([]int{5}, g)), ErrRank, "ranks[0] is 5"},
		{"translation of a wildcard", second(g.TranslateRanks([]int{AnySource}, g)), ErrRank, "ranks[0] is -1"},
		{"a buffer with too many items", buffer(0, 5), ErrBuffer, "touch bytes 0 to 39 of a buffer of 32"},
		{"a buffer with an origin outside", buffer(-8, 1), ErrBuffer, "touch bytes -8 to -1"},
		{"a negative number of items", buffer(0, -1), ErrBuffer, "-1 items"},
		{"a stride that overflows", second(Vector(2, 1, 1<<62, double)), 0, "4611686018427387904 items of 8 bytes"},
		{"a negative number of blocks", second(Vector(-1, 1, 1, double)), 0, "-1 blocks"},
		{"a displacement that overflows", second(Indexed([]int{1, 1}, []int{0, 1 << 62}, double)), 0, "block 1: 4611686018427387904 items"},
		{"more displacements than lengths", second(Indexed([]int{1}, []int{1, 2}, double)), 0, "1 block lengths and 2"},
		{"blocks of negative length", second(IndexedBlock(-1, []int{1}, double)), 0, "-1 items"},
		{"blocks of negative length, in bytes", second(HindexedBlock(-1, []int{8}, double)), 0, "-1 items"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
				t.Fatalf("got %v, want an error that contains %q", c.err, c.says)
			}
			var own *Error
			if errors.As(c.err, &own) != (c.class != 0) || c.class != 0 && !errors.Is(c.err, c.class) {
				t.Errorf("got %v, want class %d", c.err, int(c.class))
			}
		})
	}
}

// second returns the error of a call with two results.
func second[V any](_ V, err error) error { return err }
