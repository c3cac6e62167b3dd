package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// results are the seconds of each round, by way.
type results map[string][]float64

// table has medians, with the least and the greatest, and ratios within rounds.
func (r results) table() string {
	rows := [][]string{{"meanwhile", "build, s", "slower by, %"}}
	for _, w := range ways {
		var slower []float64
		for round, took := range r[w.name] {
			slower = append(slower, 100*(took/r[alone][round]-1))
		}
		rows = append(rows, []string{w.name, report.FigureOf(r[w.name]).String(), percent(report.FigureOf(slower))})
	}
	return markdown.Table(rows)
}

func percent(f report.Figure) string {
	return fmt.Sprintf("%.1f (%.1f to %.1f)", f.Median, f.Min, f.Max)
}
