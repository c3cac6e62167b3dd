package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A build is the duration of a build and its processor time, in seconds.
type build struct{ took, used float64 }

// results are the builds of each round, by load.
type results map[string]map[int]build

func (r results) add(round int, load string, b build) {
	if r[load] == nil {
		r[load] = make(map[int]build)
	}
	r[load][round] = b
}

// buildTable returns a table of medians, and their ratios to the undisturbed build of the same
// round.
func (s *site) buildTable(r results) string {
	if len(r) == 0 {
		return ""
	}
	rows := [][]string{{"load", "rounds", "build, s", "slower by, %", "processor time, s", "more by, %"}}
	took, used := func(b build) float64 { return b.took }, func(b build) float64 { return b.used }
	for _, w := range s.loads {
		cells := []string{w.name, strconv.Itoa(len(r[w.name]))}
		for _, what := range []func(build) float64{took, used} {
			var all, more []float64
			for round, b := range r[w.name] {
				all = append(all, what(b))
				more = append(more, 100*(what(b)/what(r[alone][round])-1))
			}
			compared := ""
			if w.name != alone {
				compared = likely(more)
			}
			cells = append(cells, fmt.Sprintf("%.2f", median(all)), compared)
		}
		rows = append(rows, cells)
	}
	return markdown.Table(rows)
}

// likely returns the median of samples and the 95 % confidence interval of the population's median.
func likely(samples []float64) string {
	if len(samples) == 0 {
		return ""
	}
	slices.Sort(samples)
	n := float64(len(samples))
	low := max(0, int(math.Floor(n/2-0.98*math.Sqrt(n))))
	return fmt.Sprintf("%.1f (%.1f to %.1f)", median(samples), samples[low], samples[len(samples)-1-low])
}

func median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// A part is a job's share of the processor time beside a number of processes per processor.
type part struct {
	each int
	had  float64
}

func starveTable(parts []part) string {
	if len(parts) == 0 {
		return ""
	}
	rows := [][]string{{"owner's processes per processor", "share of the job, %"}}
	for _, p := range parts {
		rows = append(rows, []string{strconv.Itoa(p.each), fmt.Sprintf("%.1f", 100*p.had)})
	}
	return markdown.Table(rows)
}
