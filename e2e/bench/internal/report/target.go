package report

import (
	"fmt"
	"math"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A Target is a required relation between two contenders.
type Target struct {
	Path    string // description of what is compared
	Against string
	Ours    Contender
	Theirs  Contender
	Tests   []string
	Sizes   []int // with several tests or sizes: the geometric mean of all
	Limit   float64
	// Speed selects a comparison of bandwidths, which should be at least Limit. Otherwise times are
	// compared, which should be at most Limit.
	Speed bool
}

// An OverlapTarget is the share of a transfer's time, in percent, that computation should hide.
type OverlapTarget struct {
	Ours    Contender
	Test    string
	Percent float64
}

// Targets returns a table of the targets that have results.
func (r *Results) Targets(targets []Target, overlaps []OverlapTarget) string {
	rows := [][]string{{"path", "against", "target", "measured", "ours", "theirs", "met"}}
	for _, t := range targets {
		if row := r.target(t); row != nil {
			rows = append(rows, row)
		}
	}
	for _, t := range overlaps {
		for _, bytes := range r.Bytes(t.Test, t.Ours.Processes) {
			if f := r.overlap(key{t.Ours, t.Test, bytes}); f.N > 0 {
				rows = append(rows, []string{
					t.Ours.Name + ", " + t.Test + " of " + Size(bytes), "transfer alone", fmt.Sprintf("≥ %.0f %%", t.Percent),
					f.String() + " %", "", "", verdict(f.Median >= t.Percent),
				})
			}
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

func (r *Results) target(t Target) []string {
	value, n := r.ratio(t, func(k key) (float64, bool) {
		f := r.seconds(k)
		return f.Median, f.N > 0
	})
	if n < len(t.Tests)*len(t.Sizes) { // a mean over some tests and sizes only would not be comparable
		return nil
	}
	var rounds []float64
	for round := range r.rounds {
		x, m := r.ratio(t, func(k key) (float64, bool) {
			p, ok := r.values[k][round]
			return p.Seconds, ok
		})
		if m == n {
			rounds = append(rounds, x)
		}
	}
	spread := FigureOf(rounds)
	spread.Median = value
	sign, met := "≤", value <= t.Limit
	if t.Speed {
		sign, met = "≥", value >= t.Limit
	}
	ours, theirs := r.both(t)
	return []string{t.Path, t.Against, fmt.Sprintf("%s %.2f×", sign, t.Limit), spread.String() + "×", ours, theirs, verdict(met)}
}

// both returns the two medians of a target that has a single test and size.
func (r *Results) both(t Target) (ours, theirs string) {
	if len(t.Tests)*len(t.Sizes) > 1 {
		return "", ""
	}
	unit := Micros
	switch {
	case t.Speed:
		unit = GBytes
	case t.Sizes[0] == 0: // a kernel
		unit = Seconds
	}
	show := func(c Contender) string {
		return short(r.show(key{c, t.Tests[0], t.Sizes[0]}, unit).Median) + " " + unit.Name
	}
	return show(t.Ours), show(t.Theirs)
}

// ratio returns the geometric mean of the ratios over the tests and sizes that both contenders
// have, and their number.
func (r *Results) ratio(t Target, of func(key) (float64, bool)) (mean float64, n int) {
	var logs float64
	for _, test := range t.Tests {
		for _, bytes := range t.Sizes {
			ours, ok := of(key{t.Ours, test, bytes})
			theirs, too := of(key{t.Theirs, test, bytes})
			if !ok || !too {
				continue
			}
			logs += math.Log(ours / theirs)
			n++
		}
	}
	if t.Speed {
		logs = -logs
	}
	return math.Exp(logs / float64(max(n, 1))), n
}
