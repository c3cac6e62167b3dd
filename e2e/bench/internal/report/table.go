package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A Unit is a presentation of the time of an operation.
type Unit struct {
	Name string
	Of   func(seconds float64, bytes int) float64
}

// The units.
var (
	Seconds  = Unit{"s", func(s float64, _ int) float64 { return s }}
	Micros   = Unit{"µs", func(s float64, _ int) float64 { return s * 1e6 }}
	GBytes   = Unit{"GB/s", func(s float64, bytes int) float64 { return float64(bytes) / s / 1e9 }}
	BothWays = Unit{"GB/s", func(s float64, bytes int) float64 { return 2 * float64(bytes) / s / 1e9 }}
	MRates   = Unit{"million messages/s", func(s float64, _ int) float64 { return 1 / s / 1e6 }}
)

// show returns the figure of a key in a unit.
func (r *Results) show(key key, unit Unit) Figure {
	return r.seconds(key).Map(func(s float64) float64 { return unit.Of(s, key.Bytes) })
}

// BySize returns a table of a test with a row for each contender and a column for each of the given
// sizes with results. Without sizes, it shows all.
func (r *Results) BySize(test string, processes int, unit Unit, sizes ...int) string {
	made := r.Bytes(test, processes)
	if len(sizes) > 0 {
		made = slices.DeleteFunc(made, func(b int) bool { return !slices.Contains(sizes, b) })
	}
	head := []string{unit.Name}
	for _, bytes := range made {
		head = append(head, Size(bytes))
	}
	rows := [][]string{head}
	for _, c := range r.contendersOf(test, processes) {
		row := []string{c.Name}
		for _, bytes := range made {
			row = append(row, r.show(key{c, test, bytes}, unit).String())
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

// Collectives returns a table for each collective with this number of processes.
func (r *Results) Collectives(processes int) string {
	var b strings.Builder
	for _, test := range plan.Collectives {
		table := r.BySize(test, processes, Micros, 1, 8, 512, 4<<10, 32<<10, 256<<10, 1<<20, 4<<20, 16<<20, 64<<20)
		if table == "" {
			continue
		}
		if test == plan.Barrier {
			table = strings.Replace(table, "| 8 B |", "| time |", 1)
		}
		fmt.Fprintf(&b, "%s, %d processes:\n\n%s\n", strings.ToUpper(test[:1])+test[1:], processes, table)
	}
	return b.String()
}

// Overlap returns a table of the share of a transfer's time that computation hides, in percent.
func (r *Results) Overlap() string {
	rows := [][]string{{"hidden, %", "receive", "send"}}
	for _, c := range r.contendersOf(plan.OverlapRecv, 2) {
		row := []string{c.Name}
		for _, test := range []string{plan.OverlapRecv, plan.OverlapSend} {
			var f Figure
			for _, bytes := range r.Bytes(test, 2) {
				f = r.overlap(key{c, test, bytes})
			}
			row = append(row, f.String())
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

// overlap returns the hidden share of the transfer, in percent.
func (r *Results) overlap(key key) Figure {
	return r.figure(key, func(p plan.Result) (float64, bool) {
		if p.Overlap == nil {
			return 0, false
		}
		return 100 * *p.Overlap, true
	})
}

// Allocations returns a table of the heap allocations per message, summed over sender and receiver.
func (r *Results) Allocations(sizes ...int) string {
	head := []string{"allocations"}
	for _, bytes := range sizes {
		head = append(head, Size(bytes))
	}
	rows := [][]string{head}
	for _, c := range r.contendersOf(plan.Latency, 2) {
		row, any := []string{c.Name}, false
		for _, bytes := range sizes {
			f := r.figure(key{c, plan.Latency, bytes}, func(p plan.Result) (float64, bool) {
				if p.Allocs == nil {
					return 0, false
				}
				return *p.Allocs, true
			})
			any = any || f.N > 0
			row = append(row, f.String())
		}
		if any {
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}
