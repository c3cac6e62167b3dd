package faultdetect

import (
	"slices"
	"testing"
)

func TestTargetsAreThoseOfDoubleBinaryRoundRobin(t *testing.T) {
	tests := []struct {
		name    string
		n, self int
		want    []int // targets from heartbeat 0 on, one more than a full cycle
	}{
		{"alone", 1, 0, []int{0, 0}},
		{"two", 2, 1, []int{0, 0, 0}},
		{"three", 3, 0, []int{1, 2, 2, 1, 1}},
		{"eight, +1 +2 +4 -1 -2 -4", 8, 0, []int{1, 2, 4, 7, 6, 4, 1}},
		{"eight, from the middle", 8, 5, []int{6, 7, 1, 4, 3, 1, 6}},
		{"six is not a power of two", 6, 4, []int{5, 0, 2, 3, 2, 0, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			for h := range tt.want {
				got = append(got, Target(tt.n, tt.self, uint64(h)))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("targets of %d of %d: %v, want %v", tt.self, tt.n, got, tt.want)
			}
		})
	}
}

func TestRounds(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 2, 3: 4, 4: 4, 5: 6, 7: 6, 8: 6, 16: 8, 32: 10, 64: 12, 128: 14, 192: 16} {
		if got := DBRR.Rounds(n); got != want {
			t.Errorf("DBRR.Rounds(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestRingWithoutFailuresIsTheGroup(t *testing.T) {
	for n := 2; n <= 40; n++ {
		r := ring{n: n}
		for h := range uint64(DBRR.Rounds(n)) {
			to, ok := r.target(DBRR, n/2, h)
			if want := Target(n, n/2, h); want != n/2 && (to != want || !ok) {
				t.Fatalf("n=%d heartbeat %d: %d %v, want %d", n, h, to, ok, want)
			}
		}
	}
}

func TestRingCountsLiveMembersOnly(t *testing.T) {
	r := ring{n: 8}.without(3).without(0).without(3).without(7)
	if r.live() != 5 {
		t.Errorf("%d members are live, want 5", r.live())
	}
	for _, tt := range []struct{ from, hops, want int }{
		{1, 1, 2}, {2, 1, 4}, {4, -1, 2}, {6, 1, 1}, {1, -1, 6}, {1, 5, 1}, {1, 13, 5}, {5, -8, 1},
	} {
		if got := r.from(tt.from, tt.hops); got != tt.want {
			t.Errorf("%d hops from %d: %d, want %d", tt.hops, tt.from, got, tt.want)
		}
	}
}

// TestSourceIsTheInverseOfTarget: source is the inverse of target, for any set of survivors.
func TestSourceIsTheInverseOfTarget(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for crashed := range uint32(1)<<n - 1 {
			r := ring{n: n}
			for i := range n {
				if crashed>>i&1 == 1 {
					r = r.without(i)
				}
			}
			for _, targets := range []Targets{DBRR, BRR, RoundRobin} {
				for h := range uint64(2 * n) {
					for i := range n {
						to, ok := r.target(targets, i, h)
						if !ok || crashed>>i&1 == 1 {
							continue
						}
						if from, ok := r.source(targets, to, h); !ok || from != i {
							t.Fatalf("%v, n=%d, crashed %0*b, round %d: %d sends to %d, which expects %d", targets, n, n, crashed, h, i, to, from)
						}
					}
				}
			}
		}
	}
}

func TestSchemesSpreadNewsToAllMembers(t *testing.T) {
	for _, targets := range []Targets{DBRR, BRR, RoundRobin} {
		for n := 2; n <= 33; n++ {
			if got := oldestNews(targets, n, 0); got > targets.Rounds(n) {
				t.Errorf("%v, n=%d: news %d rounds old, want at most %d", targets, n, got, targets.Rounds(n))
			}
		}
	}
}

func TestRandomTargetsAreSpreadEvenly(t *testing.T) {
	const n, rounds = 8, 7000
	seen := make([]int, n)
	for h := range uint64(rounds) {
		to, _ := ring{n: n}.target(Random, 3, h)
		seen[to]++
	}
	for i, s := range seen {
		if i != 3 && (s < 900 || s > 1100) || i == 3 && s > 0 {
			t.Errorf("member 3 sent to %d %d times in %d rounds", i, s, rounds)
		}
	}
}

// TestF3GossipContinuesAmongAnySurvivors tries every set of crashes in groups of up to 11 members. Once the
// survivors agree on it, each hears of every other within ⌈log₂ n⌉ periods, by gossip alone.
func TestF3GossipContinuesAmongAnySurvivors(t *testing.T) {
	for n := 2; n <= 11; n++ {
		for crashed := range uint32(1)<<n - 1 {
			if got := oldestNews(DBRR, n, crashed); got > HalfRounds(n) {
				t.Fatalf("n=%d, crashed %0*b: news %d rounds old, want at most %d", n, n, crashed, got, HalfRounds(n))
			}
		}
	}
}

// oldestNews runs the rounds among the survivors, and returns the greatest age of a survivor's heartbeat
// at another survivor.
func oldestNews(targets Targets, n int, crashed uint32) (oldest int) {
	failed := func(i int) bool { return crashed>>i&1 == 1 }
	r := ring{n: n}
	for i := range n {
		if failed(i) {
			r = r.without(i)
		}
	}
	known := make([][]int, n) // known[i][j]: newest heartbeat of j at i
	sent := make([][]int, n)
	for i := range n {
		known[i], sent[i] = make([]int, n), make([]int, n)
	}
	for round := 1; round <= 2*targets.Rounds(n); round++ {
		for i := range n {
			known[i][i] = round
			copy(sent[i], known[i])
		}
		for i := range n {
			to, ok := r.target(targets, i, uint64(round))
			if !ok || failed(i) {
				continue
			}
			for j, h := range sent[i] {
				known[to][j] = max(known[to][j], h)
			}
		}
		if round < targets.Rounds(n) {
			continue // news has not reached all members yet
		}
		for i := range n {
			for j := range n {
				if !failed(i) && !failed(j) {
					oldest = max(oldest, round-known[i][j])
				}
			}
		}
	}
	return oldest
}
