package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

var (
	us   = Contender{"us", 2}
	them = Contender{"them", 2}
)

// measured returns latencies of two contenders in three rounds, in µs.
func measured() *Results {
	r := NewResults([]Contender{us, them})
	for round, both := range [][2]float64{{3, 2}, {9, 2}, {2, 1}} {
		for i, c := range []Contender{us, them} {
			for _, bytes := range []int{1, 1000} {
				r.Add(round, c, plan.Result{Test: plan.Latency, Bytes: bytes, Seconds: both[i] * 1e-6})
			}
		}
	}
	return r
}

func TestTableShowsMediansAndSpread(t *testing.T) {
	got := measured().BySize(plan.Latency, 2, Micros, 1)
	want := "| µs | 1 B |\n| --- | --- |\n| us | 3.00 (2.00–9.00) |\n| them | 2.00 (1.00–2.00) |\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := measured().BySize(plan.Latency, 4, Micros); got != "" {
		t.Errorf("got a table without results: %s", got)
	}
}

func TestRatiosAreOfMedians(t *testing.T) {
	target := Target{Path: "p", Against: "them", Ours: us, Theirs: them, Tests: []string{plan.Latency}, Sizes: []int{1}, Limit: 1.4}
	for name, tc := range map[string]struct {
		change func(*Target)
		want   []string
	}{
		"time":           {func(*Target) {}, []string{"≤ 1.40×", "1.50 (1.50–4.50)×", "3.00 µs", "2.00 µs", "**no**"}},
		"met":            {func(t *Target) { t.Limit = 1.5 }, []string{"≤ 1.50×", "1.50 (1.50–4.50)×", "3.00 µs", "2.00 µs", "yes"}},
		"speed":          {func(t *Target) { t.Speed, t.Limit, t.Sizes = true, 0.5, []int{1000} }, []string{"≥ 0.50×", "0.67 (0.22–0.67)×", "0.33 GB/s", "0.50 GB/s", "yes"}},
		"geometric mean": {func(t *Target) { t.Sizes = []int{1, 1000} }, []string{"≤ 1.40×", "1.50 (1.50–4.50)×", "", "", "**no**"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := target
			tc.change(&wanted)
			if got := measured().target(wanted)[2:]; strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	target.Ours = Contender{"absent", 2}
	if got := measured().Targets([]Target{target}, nil); got != "" {
		t.Errorf("got a ratio without results: %s", got)
	}
}

func TestFigures(t *testing.T) {
	for want, samples := range map[string][]float64{
		"–":                {},
		"2.50":             {2.5},
		"2.50 (1.00–4.00)": {1, 2, 3, 4},
		"20.0 (0.12–1234)": {1234, 20, 0.123},
	} {
		if got := FigureOf(samples).String(); got != want {
			t.Errorf("%v: got %s, want %s", samples, got, want)
		}
	}
	falling := FigureOf([]float64{1, 2, 4}).Map(func(x float64) float64 { return 8 / x })
	if want := (Figure{Median: 4, Min: 2, Max: 8, N: 3}); falling != want {
		t.Errorf("got %v, want %v", falling, want)
	}
}

func TestOverlapIsInPercent(t *testing.T) {
	r := NewResults([]Contender{us})
	part := 0.925
	r.Add(0, us, plan.Result{Test: plan.OverlapRecv, Bytes: 64 << 20, Overlap: &part})
	want := "| hidden, % | receive | send |\n| --- | --- | --- |\n| us | 92.5 | – |\n"
	if got := r.Overlap(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPlotsNeedResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot.svg")
	if err := measured().Plot(file, "nothing", plan.Rate, 2, Micros); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a plot without results was written")
	}
	if err := measured().Plot(file, "Latency", plan.Latency, 2, Micros); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("no plot: %v", err)
	}
	if math.IsNaN(measured().show(key{us, plan.Latency, 1}, Micros).Median) {
		t.Error("the report has no figure for a measured latency")
	}
}
