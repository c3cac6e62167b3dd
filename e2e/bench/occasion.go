package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// An occasion records when, where and with what the figures were measured.
type occasion struct {
	begin          time.Time
	took           time.Duration
	rounds         int
	seed           uint64
	load           report.Figure // load of other work, in percent of the processors
	commit         string
	system         string
	openMPI, mpich string
}

// note records the properties that do not change during the measurement.
func note(ctx context.Context, o options) occasion {
	return occasion{
		begin: time.Now(), rounds: o.rounds, seed: o.seed,
		commit: version(ctx, "git", "describe", "--always", "--dirty"), system: version(ctx, "uname", "-sr"),
		openMPI: version(ctx, "mpirun.openmpi", "--version"), mpich: version(ctx, "mpichversion"),
	}
}

// String returns the line below a table.
func (w occasion) String() string {
	return fmt.Sprintf("*%s, commit %s, rounds: %d, order by seed %d; processors busy with other work before each run: %s %%.*",
		w.begin.UTC().Format("2006-01-02 15:04 MST"), w.commit, w.rounds, w.seed, w.load)
}

// machine returns a table of the machine and the software versions.
func (w occasion) machine() string {
	return markdown.Table([][]string{
		{"item", "value"},
		{"machine", fmt.Sprintf("%d processors, %s, %s", runtime.NumCPU(), processor(), w.system)},
		{"Go", runtime.Version()},
		{"Open MPI", w.openMPI},
		{"MPICH", w.mpich},
		{"last run", fmt.Sprintf("%s, %d rounds in %s", w.begin.UTC().Format("2006-01-02 15:04 MST"), w.rounds, w.took.Round(time.Second))},
	})
}

// processor returns the name of the processor, where Linux reports it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// version returns the first line of a command's version output.
func version(ctx context.Context, command string, args ...string) string {
	out, err := output(ctx, nil, command, args...)
	if err != nil {
		return "none"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.Join(strings.Fields(first), " ")
}
