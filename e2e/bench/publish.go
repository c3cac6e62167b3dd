package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A section is a part of docs/benchmarks.md that a run writes. One that has no
// results in a run stays as it was.
type section struct {
	name, text string
}

// pairColumns are the sizes that tables of pairs show; plots have all.
var pairColumns = []int{1, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20}

func sections(r *report.Results) []section {
	return []section{
		{"targets", r.Targets(targets(), overlapTargets())},
		{"latency", r.BySize(plan.Latency, 2, report.Micros, pairColumns...)},
		{"latency-bandwidth", r.BySize(plan.Latency, 2, report.GBytes, 64<<10, 1<<20, 4<<20, 16<<20, 64<<20)},
		{"crowded", r.BySize(plan.Latency, 4, report.Micros, 1, 1<<10, 64<<10, 1<<20)},
		{"rate", r.BySize(plan.Rate, 2, report.MRates)},
		{"bandwidth", r.BySize(plan.Bandwidth, 2, report.GBytes)},
		{"bidirectional", r.BySize(plan.Bidirectional, 2, report.BothWays)},
		{"overlap", r.Overlap()},
		{"allocations", r.Allocations(1, 1<<10, 16<<10, 64<<10)},
		{"collectives-2", r.Collectives(2)},
		{"collectives-4", r.Collectives(4)},
		{"ep-target", r.Targets([]report.Target{epTarget()}, nil)},
		{"kernel-targets", r.KernelTargets(kernelTargets())},
		{"kernels", r.Kernels(2)},
	}
}

// publish writes the results to where they are wanted.
func publish(r *report.Results, o options, when occasion, stdout io.Writer) error {
	for _, s := range append(sections(r), section{"machine", when.machine()}) {
		if s.text == "" {
			continue
		}
		if o.out == "" {
			fmt.Fprintf(stdout, "## %s\n\n%s\n", s.name, s.text)
			continue
		}
		if s.name != "machine" {
			s.text += "\n" + when.String() + "\n"
		}
		if err := markdown.Insert(filepath.Join(o.out, "benchmarks.md"), "bench:"+s.name, s.text); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	return draw(r, filepath.Join(o.out, "benchmarks"))
}

// draw writes the plots.
func draw(r *report.Results, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	plots := []struct {
		file, title, test string
		processes         int
		unit              report.Unit
	}{
		{"latency", "Half round trip", plan.Latency, 2, report.Micros},
		{"bandwidth", "Bandwidth, one way", plan.Bandwidth, 2, report.GBytes},
		{"bidirectional", "Bandwidth, both ways", plan.Bidirectional, 2, report.BothWays},
	}
	for _, test := range plan.Collectives {
		for _, n := range []int{2, 4} {
			p := plots[0]
			p.file, p.title = fmt.Sprintf("%s-%d", test, n), fmt.Sprintf("%s, %d processes", test, n)
			p.test, p.processes = test, n
			plots = append(plots, p)
		}
	}
	for _, p := range plots {
		if err := r.Plot(filepath.Join(dir, p.file+".svg"), p.title, p.test, p.processes, p.unit); err != nil {
			return err
		}
	}
	return nil
}
