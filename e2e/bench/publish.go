package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

// pairColumns are the sizes that tables of pairs show; plots show all sizes.
var pairColumns = []int{1, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20}

func sections(r *report.Results) []tool.Section {
	return []tool.Section{
		{Name: "targets", Text: r.Targets(targets(), overlapTargets())},
		{Name: "latency", Text: r.BySize(plan.Latency, 2, report.Micros, pairColumns...)},
		{Name: "latency-bandwidth", Text: r.BySize(plan.Latency, 2, report.GBytes, 64<<10, 1<<20, 4<<20, 16<<20, 64<<20)},
		{Name: "crowded", Text: r.BySize(plan.Latency, 4, report.Micros, 1, 1<<10, 64<<10, 1<<20)},
		{Name: "rate", Text: r.BySize(plan.Rate, 2, report.MRates)},
		{Name: "bandwidth", Text: r.BySize(plan.Bandwidth, 2, report.GBytes)},
		{Name: "bidirectional", Text: r.BySize(plan.Bidirectional, 2, report.BothWays)},
		{Name: "overlap", Text: r.Overlap()},
		{Name: "allocations", Text: r.Allocations(1, 1<<10, 16<<10, 64<<10)},
		{Name: "collectives-2", Text: r.Collectives(2)},
		{Name: "collectives-4", Text: r.Collectives(4)},
		{Name: "ep-target", Text: r.Targets([]report.Target{epTarget()}, nil)},
		{Name: "kernel-targets", Text: r.KernelTargets(kernelTargets())},
		{Name: "kernels", Text: r.Kernels(2)},
	}
}

// publish writes the results to the documentation or to standard output.
func publish(r *report.Results, o options, when occasion, stdout io.Writer) error {
	all := sections(r)
	for i, s := range all {
		if s.Text != "" && o.out != "" {
			all[i].Text += "\n" + when.String() + "\n"
		}
	}
	all = append(all, tool.Section{Name: "machine", Text: when.machine()})
	if err := tool.Publish(all, called, o.out, "benchmarks.md", stdout); err != nil || o.out == "" {
		return err
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
