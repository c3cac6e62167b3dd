package lifetime

import (
	"math/rand/v2"
	"testing"
)

func TestCut(t *testing.T) {
	tests := []struct {
		name    string
		scheme  Scheme
		n       int
		crashed Set
		want    bool
	}{
		{"no crash", BRR, 4, setOf(), false},
		{"one of four", BRR, 4, setOf(2), false},
		{"neighbours, without news for member 0", BRR, 4, setOf(2, 3), true},
		{"across the ring", BRR, 4, setOf(1, 3), false},
		{"neighbours, with news from both directions", DBRR, 4, setOf(2, 3), false},
		{"a single survivor", DBRR, 4, setOf(0, 1, 2), true},
		{"all targets of member 0 of eight", BRR, 8, setOf(1, 2, 4), true},
		{"the same, with news from others", DBRR, 8, setOf(1, 2, 4), false},
		{"all neighbours of 0 of eight", DBRR, 8, setOf(1, 2, 4, 6, 7), true},
		{"the same, distances counted in live members", LiveDBRR, 8, setOf(1, 2, 4, 6, 7), false},
		{"a single survivor, distances counted in live members", LiveDBRR, 8, setOf(1, 2, 3, 4, 5, 6, 7), true},
		{"no survivor", LiveDBRR, 8, setOf(0, 1, 2, 3, 4, 5, 6, 7), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.scheme.Among(tt.n).Cut(tt.crashed); got != tt.want {
				t.Errorf("%v of %d: got %v, want %v", tt.scheme, tt.n, got, tt.want)
			}
		})
	}
}

func TestLate(t *testing.T) {
	tests := []struct {
		name    string
		scheme  Scheme
		n       int
		crashed Set
		want    bool
	}{
		{"no crash, binary", BRR, 8, setOf(), false},
		{"no crash, double", DBRR, 100, setOf(), false},
		// In rounds +2, +1, news of 0 cannot reach 3: the path leads through 2, which has crashed.
		{"one of four, binary", BRR, 4, setOf(2), true},
		{"one of four, double", DBRR, 4, setOf(2), false},
		{"a single survivor does not wait", DBRR, 4, setOf(1, 2, 3), false},
		{"no survivor", DBRR, 4, setOf(0, 1, 2, 3), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.scheme.Among(tt.n).Late(tt.crashed); got != tt.want {
				t.Errorf("%v of %d: got %v, want %v", tt.scheme, tt.n, got, tt.want)
			}
		})
	}
}

// TestF3SurvivorsThatCountAmongThemselvesAreNeverLate also checks that a member that is cut is late. Survivors
// that count distances among themselves are never late, whatever the crashes (F3).
func TestF3SurvivorsThatCountAmongThemselvesAreNeverLate(t *testing.T) {
	for n := 2; n <= 10; n++ {
		double, ours := DBRR.Among(n), LiveDBRR.Among(n)
		for crashed := range uint64(1) << n {
			s := Set{crashed}
			if n-s.Len() >= 2 && (ours.Late(s) || ours.Cut(s)) {
				t.Fatalf("n=%d, crashed %0*b", n, n, crashed)
			}
			if n-s.Len() >= 2 && double.Cut(s) && !double.Late(s) {
				t.Fatalf("n=%d, crashed %0*b: cut off but not late", n, n, crashed)
			}
		}
	}
}

// TestF3LiveDBRRIsNeverLate varies only the number of survivors: with distances counted in live members, nothing
// else matters.
func TestF3LiveDBRRIsNeverLate(t *testing.T) {
	for n := 2; n <= MaxMembers; n++ {
		g, crashed := LiveDBRR.Among(n), Set{}
		for i := range n {
			if g.Late(crashed) {
				t.Fatalf("n=%d, %d crashed", n, i)
			}
			crashed.add(i)
		}
	}
}

func TestFewestCut(t *testing.T) {
	tests := []struct {
		scheme Scheme
		n      int
		want   int
	}{
		{BRR, 4, 2},   // +1, +2
		{BRR, 8, 3},   // all targets of a member
		{BRR, 256, 8}, //
		{DBRR, 4, 3},  // every member hears every other: a single survivor
		{DBRR, 8, 5},  // ±1, ±2, 4
		{DBRR, 16, 7}, // ±1, ±2, ±4, 8
		{LiveDBRR, 16, 15},
	}
	for _, tt := range tests {
		if got := tt.scheme.Among(tt.n).FewestCut(); got != tt.want {
			t.Errorf("%v of %d: %d, want %d", tt.scheme, tt.n, got, tt.want)
		}
	}
}

func TestFewestCutMatchesEnumeration(t *testing.T) {
	for _, scheme := range []Scheme{BRR, DBRR, LiveDBRR} {
		for n := 2; n <= 9; n++ {
			g, fewest := scheme.Among(n), n
			for crashed := range uint64(1) << n {
				if s := (Set{crashed}); g.Cut(s) {
					fewest = min(fewest, s.Len())
				}
			}
			if got := g.FewestCut(); got != fewest {
				t.Errorf("%v of %d: %d, want %d", scheme, n, got, fewest)
			}
		}
	}
}

func TestSurvives(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, job := range []Job{{1, 1}, {2, 2}, {3, 2}, {7, 3}, {100, 2}, {64, 4}} {
		for range 200 {
			crashed := draw(job.Members(), rng.IntN(job.Members()+1), rng)
			want := true
			for rank := range job.Ranks {
				alive := false
				for replica := range job.Replicas {
					alive = alive || !crashed.Has(rank+replica*job.Ranks)
				}
				want = want && alive
			}
			if got := job.Survives(crashed); got != want {
				t.Fatalf("%v survives %x: %v, want %v", job, crashed, got, want)
			}
		}
	}
}
