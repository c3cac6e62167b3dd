package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

func TestCostsAreComparedWithinRounds(t *testing.T) {
	var all []sample
	for round, seconds := range [][3]float64{{1e-6, 2e-6, 4e-6}, {10e-6, 10e-6, 20e-6}} {
		for i, way := range []string{once, twice, doubled} {
			all = append(all, sample{Round: round, Test: plan.Latency, Bytes: 1, N: 2, Way: way, Seconds: seconds[i]})
		}
	}
	all = append(all, sample{Test: epTest, N: 2, Way: once, Seconds: 3}, sample{Killed: "peer"})
	want := `|  | n | r=1 | two jobs, r=1 at once | r=2 | r=2 / r=1 | r=2 / two jobs |
| --- | --- | --- | --- | --- | --- | --- |
| ping-pong, 1 B, half round trip | 2 | 5.50 (1.00–10.0) µs | 6.00 (2.00–10.0) µs | 12.0 (4.00–20.0) µs | 3.00 (2.00–4.00)× | 2.00 (2.00–2.00)× |
| EP, class W | 2 | 3.00 s | – s | – s | –× | –× |
`
	if got := costTable(all); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := costTable([]sample{{Killed: "peer"}}); got != "" {
		t.Errorf("got a table without samples: %s", got)
	}
}

func TestPercentilesOfKills(t *testing.T) {
	var all []sample
	for i := range 200 {
		all = append(all, sample{Killed: "process", Master: float64(i+1) / 1e3, Message: float64(i+1) / 1e2})
	}
	want := "| the process of a master | 200 | 100.0 | 198.0 | 200.0 | 1000.0 | 1980.0 | 2000.0 |\n"
	if got := takeoverTable(all); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSamplesAreReadAsTheyWereWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples")
	if all, err := read(file); all != nil || err != nil {
		t.Errorf("got %v, %v without a file", all, err)
	}
	want := []sample{{Round: 3, Test: "t", Bytes: 1, N: 2, Way: once, Seconds: 0.5}, {Round: 4, Killed: "peer", Master: 1, Message: 2}}
	for i := range want {
		if err := write(file, want[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(file)
	if err != nil || !reflect.DeepEqual(got, want) || rounds(got) != 5 {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// TestTakeoverIsTheSilenceAfterAKill uses silences before, at and after a kill.
func TestTakeoverIsTheSilenceAfterAKill(t *testing.T) {
	killed := time.Unix(100, 0)
	c := &campaign{kills: map[int]time.Time{1: killed}, views: map[int]time.Time{1: killed.Add(20 * time.Millisecond)}}
	gaps := "gap 2 99990000000 100500000000\ngap 1 98000000000 99900000000\n" +
		"gap 1 99999000000 100001000000\ngap 1 100002000000 100050000000\ngap 1 100100000000 100700000000\n"
	got, err := c.samples(strings.NewReader(gaps))
	if want := []sample{{Master: 0.02, Message: 0.05}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := c.samples(strings.NewReader("gap 1\n")); err == nil {
		t.Error("an incomplete line was accepted")
	}
}
