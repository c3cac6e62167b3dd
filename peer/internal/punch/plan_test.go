package punch

import (
	"fmt"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// TestWhenAPairIsTried applies sequences of events in virtual time.
func TestWhenAPairIsTried(t *testing.T) {
	const id = p2ppeer.ID("a")
	type step struct {
		at    time.Duration
		do    func(p *plan, now time.Time)
		tries bool // after this step
	}
	relayed := func(p *plan, now time.Time) { p.relayed(id, now) }
	settled := func(p *plan, _ time.Time) { p.settled(id) }
	tried := func(p *plan, now time.Time) { p.tried(id, true, now) }
	busy := func(p *plan, now time.Time) { p.tried(id, false, now) }
	moved := func(p *plan, now time.Time) { p.moved(now) }
	nothing := func(*plan, time.Time) {}
	tests := map[string][]step{
		"not at once: libp2p tries":  {{0, relayed, false}, {pauseMin, nothing, true}},
		"not while it is tried":      {{0, relayed, false}, {pauseMin, nothing, true}, {time.Hour, relayed, false}},
		"more and more rarely":       {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, tried, false}, {3*pauseMin - 1, nothing, false}, {3 * pauseMin, nothing, true}, {3 * pauseMin, tried, false}, {7*pauseMin - 1, nothing, false}, {7 * pauseMin, nothing, true}},
		"not when it is direct":      {{0, relayed, false}, {0, settled, false}, {time.Hour, nothing, false}},
		"nor when that comes of it":  {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, settled, false}, {pauseMin, tried, false}, {time.Hour, nothing, false}},
		"again when it is lost soon": {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, settled, false}, {pauseMin, relayed, false}, {pauseMin, tried, false}, {3 * pauseMin, nothing, true}},
		"as soon after libp2p's own": {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, busy, false}, {2 * pauseMin, nothing, true}, {2 * pauseMin, tried, false}, {4*pauseMin - 1, nothing, false}, {4 * pauseMin, nothing, true}},
		"soon after a move":          {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, tried, false}, {pauseMin, moved, false}, {2 * pauseMin, nothing, true}},
		"more news change nothing":   {{0, relayed, false}, {pauseMin - 1, relayed, false}, {pauseMin, nothing, true}},
	}
	start := time.Unix(1000, 0)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlan()
			for i, s := range steps {
				now := start.Add(s.at)
				s.do(p, now)
				if got := len(p.due(now)) == 1; got != s.tries {
					t.Fatalf("step %d, after %v: tries: %v, want %v", i, s.at, got, s.tries)
				}
			}
		})
	}
}

// TestFewAreTriedAtATime uses a hundred pairs that always fail.
func TestFewAreTriedAtATime(t *testing.T) {
	p, now := newPlan(), time.Unix(1000, 0)
	for i := range 100 {
		p.relayed(p2ppeer.ID(fmt.Sprint(i)), now)
	}
	rounds := make(map[p2ppeer.ID]int)
	for end := now.Add(24 * time.Hour); now.Before(end); {
		next, ok := p.next()
		if !ok {
			t.Fatal("nobody is to be tried")
		}
		now = next
		trying := p.due(now)
		if len(trying) == 0 || len(trying) > maxTrying {
			t.Fatalf("%d are tried at a time, want 1 to %d", len(trying), maxTrying)
		}
		for _, id := range trying {
			rounds[id]++
			p.tried(id, true, now)
		}
	}
	for id, n := range rounds {
		if most := int(24*time.Hour/pauseMax) + 8; n < 100 || n > most {
			t.Errorf("%s is tried %d times a day, want 100 to %d", id, n, most)
		}
	}
	if len(rounds) != 100 {
		t.Errorf("%d of 100 are tried", len(rounds))
	}
}
