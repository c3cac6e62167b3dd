package plan

import (
	"errors"
	"testing"
)

func TestItemsAreReadAsTheyAreWritten(t *testing.T) {
	for _, processes := range []int{2, 4} {
		for _, quick := range []bool{false, true} {
			items := Of(processes, quick)
			seen := make(map[string]bool)
			for _, item := range items {
				got, err := Parse(item.String())
				if err != nil || got != item {
					t.Errorf("%s became %s: %v", item, got, err)
				}
				if name := got.Test + Size(got.Bytes); seen[name] {
					t.Errorf("%s occurs twice", item)
				} else {
					seen[name] = true
				}
			}
		}
	}
}

func Size(bytes int) string { return Item{Bytes: bytes}.String() }

func TestBadItems(t *testing.T) {
	for _, s := range []string{"", "latency", "latency:1", "latency:1:0", "latency:-1:5", "latency:0:5", "cg:1:1", "latency:1:5:7", "dance:1:5", "latency:1:99999999", "latency:999999999:1"} {
		if item, err := Parse(s); err == nil {
			t.Errorf("%q is accepted as %v", s, item)
		}
	}
}

func TestMedianIsNotSpoiledByOneBatch(t *testing.T) {
	calls := 0
	got, err := Median(50, func(n int) (float64, error) {
		calls++
		if calls == 3 {
			return 1000, nil // the machine was busy with other work
		}
		return float64(n) * 2, nil
	})
	if err != nil || got != 2 {
		t.Errorf("got %v, %v, want 2", got, err)
	}
	if calls != 1+batches {
		t.Errorf("%d batches, want a warm-up and %d", calls, batches)
	}
	failure := errors.New("broken")
	if _, err := Median(1, func(int) (float64, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Errorf("Median returned %v, want the error of the measurement", err)
	}
}
