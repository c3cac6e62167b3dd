package discovery

import (
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// TestRehearsalTiming simulates four peers, one known at once and three from hints. The second of
// these is gone, and the third answers within the grace period.
func TestRehearsalTiming(t *testing.T) {
	const ms = time.Millisecond
	replies := []Reply{
		{After: 50 * ms, Candidate: offerFrom(0, 1, 30)},
		{After: 3000 * ms, Refusal: &Refusal{Reason: Unreachable}},
		{After: 40 * ms, Candidate: offerFrom(2, 1, 20)},
		{After: 100 * ms, Candidate: offerFrom(3, 1, 10)},
	}
	r := Rehearsal{
		Config: Config{Parallel: 4, Grace: 70 * ms}, Need: Need{Slots: 2}, Near: []p2ppeer.ID{id(0)},
		Hints: []Hint{{10 * ms, id(1)}, {20 * ms, id(2)}, {25 * ms, id(3)}}, Ended: 30 * ms,
		Ask: func(p p2ppeer.ID) Reply { return replies[slices.Index([]p2ppeer.ID{id(0), id(1), id(2), id(3)}, p)] },
	}
	p := r.Play()
	if got, want := order(p.Candidates), []p2ppeer.ID{id(3), id(2), id(0)}; !slices.Equal(got, want) {
		t.Errorf("got candidates %v, want %v", got, want)
	}
	if p.Asked != 4 || p.Enough != 60*ms || p.Took != 130*ms {
		t.Errorf("%d peers were asked, enough slots after %v, end after %v; want 4, 60 ms, 130 ms", p.Asked, p.Enough, p.Took)
	}
	r.Need.Slots = 9
	if p := r.Play(); p.Enough != 0 || p.Took != 3010*ms {
		t.Errorf("enough slots after %v, end after %v; want 0, and the end of the last request", p.Enough, p.Took)
	}
}

func TestParallelGrowsWithTheNeed(t *testing.T) {
	c := Config{Parallel: 32, ParallelPerSlot: 2}
	for slots, want := range map[int]int{0: 32, 4: 32, 64: 128, 1000: maxParallel} {
		if got := c.parallel(Need{Slots: slots}); got != want {
			t.Errorf("%d slots: %d at a time, want %d", slots, got, want)
		}
	}
}
