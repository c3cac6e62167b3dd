package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
)

// A section is a part of docs/benchmarks.md that a run writes. One that has no
// results in a run stays as it was.
type section struct {
	name, text string
}

// pairColumns are the sizes that tables of pairs show; plots have all.
var pairColumns = []int{1, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20}

func sections(ctx context.Context, r *report.Results, o options, load []float64, took time.Duration) []section {
	return []section{
		{"run", describe(ctx, r, o, load, took)},
		{"targets", r.Targets(targets(), overlapTargets())},
		{"latency", r.BySize(plan.Latency, 2, report.Micros, pairColumns...)},
		{"latency-bandwidth", r.BySize(plan.Latency, 2, report.GBytes, 64<<10, 1<<20, 4<<20, 16<<20, 64<<20)},
		{"crowded", r.BySize(plan.Latency, 4, report.Micros, 1, 1<<10, 64<<10, 1<<20)},
		{"rate", r.BySize(plan.Rate, 2, report.MRates)},
		{"bandwidth", r.BySize(plan.Bandwidth, 2, report.GBytes)},
		{"bidirectional", r.BySize(plan.Bidirectional, 2, report.BothWays)},
		{"overlap", r.Overlap()},
		{"allocations", r.Allocations(1, 1<<10, 16<<10)},
		{"collectives-2", r.Collectives(2)},
		{"collectives-4", r.Collectives(4)},
		{"kernel-targets", r.KernelTargets(kernelTargets())},
		{"kernels", r.Kernels(2)},
	}
}

// publish writes the results to where they are wanted.
func publish(ctx context.Context, r *report.Results, o options, load []float64, took time.Duration, stdout io.Writer) error {
	for _, s := range sections(ctx, r, o, load, took) {
		if s.text == "" {
			continue
		}
		if o.out == "" {
			fmt.Fprintf(stdout, "## %s\n\n%s\n", s.name, s.text)
			continue
		}
		if err := report.Insert(filepath.Join(o.out, "benchmarks.md"), s.name, s.text); err != nil {
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

// describe says what was measured where.
func describe(ctx context.Context, r *report.Results, o options, load []float64, took time.Duration) string {
	rows := [][]string{
		{"what", "this run"},
		{"machine", fmt.Sprintf("%d processors, %s, %s", runtime.NumCPU(), processor(), version(ctx, "uname", "-sr"))},
		{"rounds", fmt.Sprintf("%d, interleaved, order by seed %d", r.Rounds(), o.seed)},
		{"busy with other things", report.FigureOf(load).String() + " % of the processors"},
		{"time", fmt.Sprintf("%s, took %s", time.Now().UTC().Format("2006-01-02 15:04 MST"), took.Round(time.Second))},
		{"commit", version(ctx, "git", "describe", "--always", "--dirty")},
		{"Go", runtime.Version()},
		{"Open MPI", version(ctx, "mpirun.openmpi", "--version")},
		{"MPICH", version(ctx, "mpichversion")},
	}
	return report.Table(rows)
}

// processor is the name of the processor, where Linux tells.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// version is the first line that a command prints about itself.
func version(ctx context.Context, command string, args ...string) string {
	out, err := output(ctx, nil, command, args...)
	if err != nil {
		return "none"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.Join(strings.Fields(first), " ")
}
