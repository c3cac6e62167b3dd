package job

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/reservation"
)

func newTestHealing(n int) *Healing {
	random := rand.New(rand.NewPCG(1, 2))
	return NewHealing(n, func(failed int) time.Duration { return reservation.Backoff(failed, random) })
}

func TestLongestWaitingRankIsServedFirst(t *testing.T) {
	h := newTestHealing(3)
	if _, ok := h.Next(0); ok {
		t.Fatal("a rank that lacks no replica is served")
	}
	if !h.Observe(2, true, time.Second) || !h.Observe(0, true, 2*time.Second) || h.Observe(0, true, 3*time.Second) {
		t.Fatal("a loss is not reported exactly once")
	}
	for _, want := range []int{2, 0} {
		rank, ok := h.Next(3 * time.Second)
		if !ok || rank != want {
			t.Fatalf("rank %d, %v; want %d", rank, ok, want)
		}
		h.Serve(rank)
	}
	if rank, ok := h.Next(3 * time.Second); ok {
		t.Errorf("rank %d is served twice at the same time", rank)
	}
	if took := h.Healed(2, 4*time.Second); took != 3*time.Second {
		t.Errorf("healed after %v, want 3s", took)
	}
}

func TestFailedAttemptsBackOff(t *testing.T) {
	h := newTestHealing(1)
	now := time.Duration(0)
	h.Observe(0, true, now)
	var pauses []time.Duration
	for range 12 {
		if _, ok := h.Next(now); !ok {
			t.Fatalf("no further attempt after pauses of %v", pauses)
		}
		h.Serve(0)
		h.GaveUp(0, now)
		began := now
		for _, ok := h.Next(now); !ok; _, ok = h.Next(now) {
			now += time.Millisecond
		}
		pauses = append(pauses, now-began)
		if got := h.Failed(0); got != len(pauses) {
			t.Fatalf("%d attempts failed, want %d", got, len(pauses))
		}
	}
	if pauses[0] == 0 || pauses[0] > time.Second || pauses[11] < time.Second || pauses[11] > 10*time.Second {
		t.Errorf("pauses %v", pauses)
	}
	h.Observe(0, false, now)
	if h.Observe(0, true, now); h.ranks[0].next > now || h.Failed(0) != 0 {
		t.Error("a new loss waits because of an earlier one")
	}
}
