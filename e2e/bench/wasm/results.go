package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// results holds the seconds of each trial, round by round.
type results struct {
	trials  []trial
	seconds [][]float64 // by trial and round
}

// measure adds a round, unless there is an error.
func (r results) measure(ctx context.Context, w *workshop, round int) error {
	took := make([]float64, len(r.trials))
	for _, i := range rand.Perm(len(r.trials)) {
		t := r.trials[i]
		var err error
		if took[i], err = t.measure(ctx, w, t.program); err != nil {
			return fmt.Errorf("%s, %s: %w", t.row, t.program.form(), err)
		}
		fmt.Fprintf(os.Stderr, "wasm: round %d  %s/%s  %s  %s\n", round+1, t.table, t.row, t.program.form(), inSeconds(took[i]))
	}
	for i, s := range took {
		r.seconds[i] = append(r.seconds[i], s)
	}
	return nil
}

// tables are the tables to write, in order.
var tables = []string{inC, inGo, start, message}

// table returns a table with the native program's seconds, and the ratios of the others to it. Without results,
// table returns "".
func (r results) table(name string) string {
	head := []string{""}
	var rows [][]string
	for i, t := range r.trials {
		if t.table != name || len(r.seconds[i]) == 0 {
			continue
		}
		column := slices.Index(head, t.program.form())
		if column < 0 {
			column = len(head)
			head = append(head, t.program.form())
		}
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == t.row })
		if at < 0 {
			at = len(rows)
			rows = append(rows, []string{t.row})
		}
		for len(rows[at]) <= column {
			rows[at] = append(rows[at], "")
		}
		rows[at][column] = r.cell(i)
	}
	if rows == nil {
		return ""
	}
	for i := range rows {
		rows[i] = append(rows[i], make([]string, len(head)-len(rows[i]))...)
	}
	return markdown.Table(append([][]string{head}, rows...))
}

// cell returns the median of a trial, with its minimum and maximum. The figures are in seconds or, for a module
// that computes, ratios to the native program in the same round.
func (r results) cell(i int) string {
	t := r.trials[i]
	base := slices.IndexFunc(r.trials, func(o trial) bool { return o.table == t.table && o.row == t.row && o.program.engine == "" })
	computing := t.table == inC || t.table == inGo
	if t.program.engine == "" || !computing || base < 0 {
		return spread(r.seconds[i], inSeconds)
	}
	ratios := make([]float64, len(r.seconds[i]))
	for round, s := range r.seconds[i] {
		ratios[round] = s / r.seconds[base][round]
	}
	return spread(ratios, func(x float64) string { return fmt.Sprintf("%.2f×", x) })
}

func spread(x []float64, write func(float64) string) string {
	sorted := slices.Sorted(slices.Values(x))
	return fmt.Sprintf("%s (%s–%s)", write(sorted[len(sorted)/2]), write(sorted[0]), write(sorted[len(sorted)-1]))
}

// inSeconds formats a time with three digits.
func inSeconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}
