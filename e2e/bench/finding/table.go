package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/finding/sim"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// columns are the columns of the tables, computed from a sample's searches.
var columns = []struct {
	head string
	cell func([]sim.Outcome) string
}{
	{"64 found after (90 %)", func(os []sim.Outcome) string {
		found := func(o sim.Outcome) time.Duration { return o.Enough }
		if share(os, func(o sim.Outcome) bool { return o.Enough > 0 }) < 1 {
			return fmt.Sprintf("%.0f %% never", 100*share(os, func(o sim.Outcome) bool { return o.Enough == 0 }))
		}
		return fmt.Sprintf("%s (%s)", seconds(quantile(os, 0.5, found)), seconds(quantile(os, 0.9, found)))
	}},
	{"search ended after", func(os []sim.Outcome) string {
		return seconds(quantile(os, 0.5, func(o sim.Outcome) time.Duration { return o.Took }))
	}},
	{"messages (most)", func(os []sim.Outcome) string {
		messages := func(o sim.Outcome) int { return o.Messages }
		return fmt.Sprintf("%d (%d)", quantile(os, 0.5, messages), quantile(os, 1, messages))
	}},
	{"messages of the lookup", func(os []sim.Outcome) string {
		return strconv.Itoa(quantile(os, 0.5, func(o sim.Outcome) int { return o.Lookup }))
	}},
	{"peers asked", func(os []sim.Outcome) string {
		return strconv.Itoa(quantile(os, 0.5, func(o sim.Outcome) int { return o.Asked }))
	}},
	{"gone", func(os []sim.Outcome) string {
		return fmt.Sprintf("%.0f %%", 100*quantile(os, 0.5, func(o sim.Outcome) float64 { return float64(o.Gone) / float64(max(1, o.Asked)) }))
	}},
	{"candidates", func(os []sim.Outcome) string {
		return strconv.Itoa(quantile(os, 0.5, func(o sim.Outcome) int { return o.Found }))
	}},
	{"distance of candidates (best)", func(os []sim.Outcome) string {
		ms := func(of func(sim.Outcome) time.Duration) string {
			return strconv.Itoa(int(quantile(os, 0.5, of).Milliseconds()))
		}
		return ms(func(o sim.Outcome) time.Duration { return o.RTT }) + " ms (" + ms(func(o sim.Outcome) time.Duration { return o.Best }) + ")"
	}},
}

// table returns a table with a row for each kind of searcher in each sample.
func table(samples []sample, head string, name func(sample) string) string {
	rows := [][]string{{head, "searcher"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.head)
	}
	for k, kind := range kinds {
		for _, s := range samples {
			row := []string{name(s), kind}
			for _, c := range columns {
				row = append(row, c.cell(s.outcomes[k]))
			}
			rows = append(rows, row)
		}
	}
	return markdown.Table(rows)
}

func growthTable(samples []sample) string {
	return table(samples, "peers", func(s sample) string { return strconv.Itoa(s.live) })
}

func limitsTable(samples []sample) string {
	return table(samples, fmt.Sprintf("%d peers", samples[0].live), func(s sample) string { return s.name })
}

func share(os []sim.Outcome, is func(sim.Outcome) bool) float64 {
	n := 0
	for _, o := range os {
		if is(o) {
			n++
		}
	}
	return float64(n) / float64(len(os))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
