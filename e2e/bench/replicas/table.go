package main

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A row is one test of the table of costs.
type row struct {
	test  string
	bytes int
	n     int
}

// costTable returns a table with a row for each test. It shows medians with their minimum and
// maximum, and the ratios within rounds.
func costTable(all []sample) string {
	times := make(map[row]map[string]map[int]float64) // by way and round
	var order []row
	for _, s := range all {
		if s.Way == "" {
			continue
		}
		r := row{s.Test, s.Bytes, s.N}
		if times[r] == nil {
			order = append(order, r)
			times[r] = map[string]map[int]float64{once: {}, twice: {}, doubled: {}}
		}
		times[r][s.Way][s.Round] = s.Seconds
	}
	rows := [][]string{{"", "n", once, twice + " at once", doubled, "r=2 / r=1", "r=2 / two jobs"}}
	for _, r := range sorted(order) {
		cells := []string{r.name(), fmt.Sprint(r.n)}
		for _, way := range []string{once, twice, doubled} {
			cells = append(cells, r.time(times[r][way]))
		}
		for _, against := range []string{once, twice} {
			cells = append(cells, ratio(times[r][doubled], times[r][against]).String()+"×")
		}
		rows = append(rows, cells)
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

// sorted sorts the rows in the order of the subjects, and then of sizes.
func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int {
		if a.place() != b.place() {
			return a.place() - b.place()
		}
		return a.bytes - b.bytes
	})
	return rows
}

// place returns the position of the test's rows.
func (r row) place() int {
	return slices.Index([]string{plan.Latency, plan.Alltoall, epTest, isTest, heatTest}, r.test)
}

func (r row) name() string {
	switch r.test {
	case plan.Latency:
		return "ping-pong, " + report.Size(r.bytes) + ", half round trip"
	case plan.Alltoall:
		return "all-to-all, " + report.Size(r.bytes) + " to each"
	}
	return r.test
}

// time returns the figure of the times over the rounds.
func (r row) time(rounds map[int]float64) string {
	unit, factor := "s", 1.0
	if r.bytes > 0 {
		unit, factor = "µs", 1e6
	}
	return report.FigureOf(values(rounds)).Map(func(s float64) float64 { return s * factor }).String() + " " + unit
}

func values(rounds map[int]float64) []float64 {
	var all []float64
	for _, x := range rounds {
		all = append(all, x)
	}
	return all
}

// ratio returns the figure of the ratios over the rounds that have both times.
func ratio(ours, theirs map[int]float64) report.Figure {
	var all []float64
	for round, x := range ours {
		if y, ok := theirs[round]; ok {
			all = append(all, x/y)
		}
	}
	return report.FigureOf(all)
}

// takeoverTable returns a table with percentiles of the times after kills, in milliseconds.
func takeoverTable(all []sample) string {
	rows := [][]string{{"SIGKILL to", "kills", "new master: p50, ms", "p99", "greatest", "first message: p50, ms", "p99", "greatest"}}
	for _, killed := range []string{"process", "peer"} {
		var masters, messages []float64
		for _, s := range all {
			if s.Killed == killed {
				masters, messages = append(masters, 1e3*s.Master), append(messages, 1e3*s.Message)
			}
		}
		if len(masters) == 0 {
			continue
		}
		cells := []string{"the " + killed + " of a master", fmt.Sprint(len(masters))}
		for _, times := range [][]float64{masters, messages} {
			slices.Sort(times)
			for _, part := range []float64{0.5, 0.99, 1} {
				cells = append(cells, fmt.Sprintf("%.1f", percentile(times, part)))
			}
		}
		rows = append(rows, cells)
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

// percentile returns the smallest sample that at least the given part of the samples do not exceed.
func percentile(sorted []float64, part float64) float64 {
	for i, x := range sorted {
		if float64(i+1) >= part*float64(len(sorted)) {
			return x
		}
	}
	return 0
}
