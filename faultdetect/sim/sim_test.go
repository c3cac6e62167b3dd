package sim

import (
	"maps"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

// TestSameSeedSameEvents runs a world twice, with all kinds of events.
func TestSameSeedSameEvents(t *testing.T) {
	once := func() (sent int, w *World) {
		w, err := New(9, faultdetect.Config{Period: time.Second}, 7)
		if err != nil {
			t.Fatal(err)
		}
		w.RandomPhases()
		w.Loss = 0.1
		w.Watch = func(faultdetect.Message) { sent++ }
		w.Crash(2, 20*time.Second)
		w.Kill(3, 40*time.Second)
		w.Pause(4, 10*time.Second, 11*time.Second)
		w.Run(time.Minute)
		return sent, w
	}
	sent, w := once()
	again, same := once()
	if sent != again || w.Doubts != same.Doubts || !maps.Equal(w.Failed, same.Failed) || len(w.Failed) == 0 {
		t.Errorf("%d messages, %d suspicions, failed %v; then %d, %d, %v", sent, w.Doubts, w.Failed, again, same.Doubts, same.Failed)
	}
}
