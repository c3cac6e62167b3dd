package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/examples/internal/npb/npbtest"
	"github.com/p2pmpi/p2pmpi/mpj"
)

func TestClassS(t *testing.T) { npbtest.Verify(t, kernel, 1, 2, 3, 4, 7) }

// TestMisplacedKeysAreDetected checks that every kind of corruption of a ranking is detected.
func TestMisplacedKeysAreDetected(t *testing.T) {
	for name, spoil := range map[string]func(*sorter){
		"a rank too high":        func(s *sorter) { s.lower++ },
		"a key was lost":         func(s *sorter) { s.received = s.received[1:]; rankKeys(s.received, s.below, s.low) },
		"two keys with one rank": func(s *sorter) { s.below[len(s.below)/2]-- },
	} {
		t.Run(name, func(t *testing.T) {
			npbtest.Run(t, 2, func(w *mpj.World) error {
				s, err := newSorter(&npb.Run{World: w}, classes["S"])
				if err == nil {
					err = s.rank(1)
				}
				if err != nil {
					return err
				}
				spoil(s)
				wrong, err := s.checkSorted()
				if wrong += s.checkTests(1); err == nil && wrong == 0 && w.Rank() == 1 {
					err = fmt.Errorf("misplaced keys were not detected")
				}
				return err
			})
		})
	}
}

func TestKeysDoNotDependOnTheDistribution(t *testing.T) {
	c := classes["S"]
	all := makeKeys(c, 0, 1000)
	for from := 0; from < len(all); from += 77 {
		if part := makeKeys(c, from, len(all)); !slices.Equal(part, all[from:]) {
			t.Errorf("keys from %d on differ", from)
		}
	}
}

func TestDivide(t *testing.T) {
	for _, tc := range []struct {
		name   string
		totals []int32
		ranks  int
		want   []int
	}{
		{"evenly", []int32{5, 5, 5, 5}, 2, []int{2, 4}},
		{"one rank", []int32{5, 5}, 1, []int{2}},
		{"a large bucket belongs to one rank", []int32{1, 18, 1}, 2, []int{2, 3}},
		{"a large bucket leaves a rank without keys", []int32{0, 20, 0}, 3, []int{2, 2, 3}},
		{"fewer buckets than ranks", []int32{4, 4}, 4, []int{1, 1, 2, 2}},
		{"no keys", []int32{0, 0}, 2, []int{1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := divide(tc.totals, tc.ranks); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRankKeysCountsSmallerKeys(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const low, width = 100, 64
	keys := make([]int32, 500)
	for i := range keys {
		keys[i] = low + random.Int32N(width)
	}
	below := make([]int32, width+1)
	rankKeys(keys, below, low)
	slices.Sort(keys)
	for i, k := range keys {
		if want := slices.Index(keys, k); int(below[k-low]) != want {
			t.Fatalf("seed %d: key %d (number %d) has %d smaller keys, want %d", seed, k, i, below[k-low], want)
		}
	}
}
