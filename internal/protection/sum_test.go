package protection

import (
	"slices"
	"testing"
)

func TestFirstDifference(t *testing.T) {
	s := func(context uint32, dest int, count uint64) Sum {
		return Sum{Context: context, Dest: dest, Count: count}
	}
	tests := []struct {
		name   string
		a, b   []Sum
		x, y   Sum
		unlike bool
	}{
		{"both empty", nil, nil, Sum{}, Sum{}, false},
		{"equal", []Sum{s(1, 0, 2)}, []Sum{s(1, 0, 2)}, Sum{}, Sum{}, false},
		{"different counts", []Sum{s(1, 0, 2), s(2, 0, 1)}, []Sum{s(1, 0, 2), s(2, 0, 3)}, s(2, 0, 1), s(2, 0, 3), true},
		{"missing from the first", []Sum{s(1, 0, 2)}, []Sum{s(1, 0, 2), s(1, 1, 5)}, s(1, 1, 0), s(1, 1, 5), true},
		{"missing from the second", []Sum{s(1, 0, 2), s(3, 0, 1)}, []Sum{s(3, 0, 1)}, s(1, 0, 2), s(1, 0, 0), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if x, y, unlike := FirstDifference(tt.a, tt.b); x != tt.x || y != tt.y || unlike != tt.unlike {
				t.Errorf("got %v, %v, %v; want %v, %v, %v", x, y, unlike, tt.x, tt.y, tt.unlike)
			}
		})
	}
}

// TestClippedSumsReportEveryDifference changes a sum after the last one that is kept.
func TestClippedSumsReportEveryDifference(t *testing.T) {
	sums := make([]Sum, 3*MaxSums)
	for i := range sums {
		sums[i] = Sum{Context: uint32(i), Count: 1}
	}
	whole := Clip(sums)
	if len(whole) != MaxSums || whole[MaxSums-1].Count != 2*MaxSums+1 {
		t.Errorf("%d rows, %v", len(whole), whole[len(whole)-1])
	}
	for _, i := range []int{0, MaxSums - 1, MaxSums, 3*MaxSums - 1} {
		other := slices.Clone(sums)
		other[i].Digest++
		if _, _, unlike := FirstDifference(whole, Clip(other)); !unlike {
			t.Errorf("row %d differs, but FirstDifference did not find it", i)
		}
	}
}
