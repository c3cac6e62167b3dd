package punch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// TestRetrySchedule applies sequences of events in virtual time.
func TestRetrySchedule(t *testing.T) {
	const id = p2ppeer.ID("a")
	type step struct {
		at    time.Duration
		do    func(r *retries, ends chan bool)
		tries bool // since the previous step
	}
	relayed := func(r *retries, _ chan bool) { r.set(id, true) }
	settled := func(r *retries, _ chan bool) { r.set(id, false) }
	tried := func(_ *retries, ends chan bool) { ends <- true }
	busy := func(_ *retries, ends chan bool) { ends <- false }
	moved := func(r *retries, _ chan bool) { r.restart() }
	nothing := func(*retries, chan bool) {}
	tests := map[string][]step{
		"not at once, since libp2p tries":   {{0, relayed, false}, {pauseMin, nothing, true}},
		"not during an attempt":             {{0, relayed, false}, {pauseMin, nothing, true}, {time.Hour, relayed, false}},
		"at growing intervals":              {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, tried, false}, {3*pauseMin - 1, nothing, false}, {3 * pauseMin, nothing, true}, {3 * pauseMin, tried, false}, {7*pauseMin - 1, nothing, false}, {7 * pauseMin, nothing, true}},
		"not for a direct connection":       {{0, relayed, false}, {0, settled, false}, {time.Hour, nothing, false}},
		"not after a successful attempt":    {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, settled, false}, {pauseMin, tried, false}, {time.Hour, nothing, false}},
		"again when the connection is lost": {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, settled, false}, {pauseMin, relayed, false}, {pauseMin, tried, false}, {3 * pauseMin, nothing, true}},
		"soon after libp2p's own attempt":   {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, busy, false}, {2 * pauseMin, nothing, true}, {2 * pauseMin, tried, false}, {4*pauseMin - 1, nothing, false}, {4 * pauseMin, nothing, true}},
		"soon after an address change":      {{0, relayed, false}, {pauseMin, nothing, true}, {pauseMin, tried, false}, {pauseMin, moved, false}, {2 * pauseMin, nothing, true}},
		"not earlier after more events":     {{0, relayed, false}, {pauseMin - 1, relayed, false}, {pauseMin, nothing, true}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ends := make(chan bool)
				var attempts atomic.Int64
				r := newRetries(ctx, func(p2ppeer.ID) bool {
					attempts.Add(1)
					return <-ends
				})
				defer r.running.Wait()
				defer close(ends)
				defer cancel()
				start, counted := time.Now(), int64(0)
				for i, s := range steps {
					time.Sleep(time.Until(start.Add(s.at)))
					s.do(r, ends)
					synctest.Wait()
					got := attempts.Load() - counted
					if counted += got; got > 1 || (got == 1) != s.tries {
						t.Fatalf("step %d, after %v: %d attempts; want one attempt: %v", i, s.at, got, s.tries)
					}
				}
			})
		})
	}
}

// TestConcurrentAttemptsAreLimited uses a hundred peers for which every attempt fails.
func TestConcurrentAttemptsAreLimited(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		type report struct {
			id   p2ppeer.ID
			more int // 1 at the beginning of an attempt, -1 at its end
		}
		reports := make(chan report)
		r := newRetries(ctx, func(id p2ppeer.ID) bool {
			reports <- report{id, 1}
			time.Sleep(10 * time.Second)
			reports <- report{id, -1}
			return true
		})
		for i := range 100 {
			r.set(p2ppeer.ID(fmt.Sprint(i)), true)
		}
		go func() {
			r.running.Wait()
			close(reports)
		}()
		rounds, trying := make(map[p2ppeer.ID]int), 0
		for e := range reports {
			trying += e.more
			if trying > maxTrying {
				t.Fatalf("%d attempts at a time, want at most %d", trying, maxTrying)
			}
			rounds[e.id] += max(0, e.more)
		}
		for id, n := range rounds {
			if most := int(24*time.Hour/pauseMax) + 8; n < 100 || n > most {
				t.Errorf("%d attempts a day for peer %s, want 100 to %d", n, id, most)
			}
		}
		if len(rounds) != 100 {
			t.Errorf("there were attempts for %d peers, want 100", len(rounds))
		}
	})
}
