package uptime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/reliability"
)

func TestHistoryIsKeptAcrossRestarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	start := time.Now()
	live := func(ends int, before, during time.Duration) *History {
		t.Helper()
		h, err := Open(file, start)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := h.At(start.Add(during)), (reliability.History{Up: before + during, Ends: ends}); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		return h
	}
	save := func(h *History, after time.Duration, running bool) {
		t.Helper()
		if err := h.Save(start.Add(after), running); err != nil {
			t.Fatal(err)
		}
	}
	save(live(0, 0, time.Hour), time.Hour, false)            // drained
	live(0, time.Hour, 0)                                    // killed at once
	save(live(1, time.Hour, time.Minute), time.Minute, true) // killed after a minute, or halted
	save(live(2, time.Hour+time.Minute, 0), 0, false)        // drained
	live(2, time.Hour+time.Minute, 0)
}

func TestInvalidHistoryIsDiscarded(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "up", "another shape": `{"up":"long"}`, "empty": ""} {
		file := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := Open(file, time.Now())
		if err != nil || h.past != (reliability.History{}) {
			t.Errorf("file %s: got %v, %v", name, h, err)
		}
	}
}
