package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/lifetime"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func (r results) sections() []tool.Section {
	var cut strings.Builder
	for _, f := range rates {
		fmt.Fprintf(&cut, "f = %s:\n\n%s\n", percent(f), r.cut(f))
	}
	return []tool.Section{{Name: "fewest", Text: r.fewest()}, {Name: "cut", Text: cut.String()}, {Name: "late", Text: r.late()}}
}

// cut returns a table that compares the failure probabilities of the application and of the detectors.
func (r results) cut(f float64) string {
	head := []string{"n", "r", "application"}
	for _, s := range schemes {
		head = append(head, s.String(), s.String()+" first")
	}
	rows := [][]string{head}
	for _, g := range r {
		row := []string{strconv.Itoa(g.job.Ranks), strconv.Itoa(g.job.Replicas), short(g.job.Fails(f))}
		for _, d := range g.detectors {
			row = append(row, cell(d.cut, f), cell(d.first, f))
		}
		rows = append(rows, row)
	}
	return markdown.Table(rows)
}

// fewest returns a table of the smallest number of crashes that makes each detector fail.
func (r results) fewest() string {
	head := []string{"members"}
	for _, s := range schemes {
		head = append(head, s.String())
	}
	rows := [][]string{head}
	for _, g := range r.pairs() {
		row := []string{strconv.Itoa(g.job.Members())}
		for _, d := range g.detectors {
			row = append(row, strconv.Itoa(d.fewest))
		}
		rows = append(rows, row)
	}
	return markdown.Table(rows)
}

// late returns a table of how often a survivor looks failed.
func (r results) late() string {
	head := []string{"members"}
	fixed := schemes[:2] // LiveDBRR is never late
	for _, s := range fixed {
		for _, f := range rates {
			head = append(head, fmt.Sprintf("%v, f = %s", s, percent(f)))
		}
	}
	rows := [][]string{head}
	for _, g := range r.pairs() {
		row := []string{strconv.Itoa(g.job.Members())}
		for _, d := range g.detectors[:len(fixed)] {
			for _, f := range rates {
				row = append(row, cell(d.late, f))
			}
		}
		rows = append(rows, row)
	}
	return markdown.Table(rows)
}

// pairs returns the groups of jobs with 2 replicas.
func (r results) pairs() results {
	var two results
	for _, g := range r {
		if g.job.Replicas == 2 {
			two = append(two, g)
		}
	}
	return two
}

// cell formats a probability: an exact one alone, an estimate with its interval, and only the upper bound where
// the samples contain almost no set with the property.
func cell(p lifetime.Profile, f float64) string {
	share := p.At(f)
	switch {
	case p.Exact, short(share.Low) == short(share.High):
		return short(share.Fraction)
	case bound(share):
		return "≤ " + short(share.High)
	}
	return fmt.Sprintf("%s (%s–%s)", short(share.Fraction), short(share.Low), short(share.High))
}

// bound reports whether a sample shows only an upper bound.
func bound(s lifetime.Share) bool { return s.Low < s.High/1000 }

// short formats a probability with two digits. A probability very close to 0 or 1 is shown as 0 or
// 1.
func short(p float64) string {
	if p < 1e-99 {
		return "0"
	}
	digits := strconv.FormatFloat(p, 'g', 2, 64)
	if p > 1-1e-7 {
		return "1"
	}
	if p > 0.9 { // show the distance from 1
		digits = strconv.FormatFloat(p, 'f', 2+int(-math.Log10(1-p)), 64)
	}
	return digits
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'g', 3, 64) + " %" }
