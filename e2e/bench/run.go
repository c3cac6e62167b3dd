package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// perRun bounds one run of one contender.
const perRun = 150 * time.Second

// A runner runs items, given as command line arguments, and returns the printed output.
type runner func(ctx context.Context, w *workshop, items []string) ([]byte, error)

// ours runs prog as a job of n ranks with r replicas.
func ours(n, r int, options ...string) runner {
	return on(func(w *workshop) *grid.Grid { return w.grid }, n, r, options...)
}

// oursRelayed is like ours, on peers that cannot reach each other.
func oursRelayed(n, r int) runner {
	return on(func(w *workshop) *grid.Grid { return w.relayed }, n, r, "-a", "spread")
}

// on returns a runner that runs prog on a grid of the workshop.
func on(pick func(*workshop) *grid.Grid, n, r int, options ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		grid := pick(w)
		args := append([]string{"-n", strconv.Itoa(n), "-r", strconv.Itoa(r), "--timeout", perRun.String()}, options...)
		if r > 1 {
			args = append(args, "--on-divergence", "warn") // replicas send and print different times
		}
		if w.profile == "" {
			return grid.Run(ctx, w.dir, append(append(args, w.built("prog")), items...)...)
		}
		// p2prun does not overwrite files.
		if err := os.Remove(filepath.Join(w.profile, "cpu.pprof")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		args = append(args, "-o", "cpu.pprof", w.built("prog"), "-profile", "cpu.pprof")
		return grid.Run(ctx, w.profile, append(args, items...)...)
	}
}

// openMPI runs the C program with Open MPI. No contender binds its processes to processors, because only this
// setting is possible for all contenders.
func openMPI(n int, options ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		return mpirunOpenMPI(ctx, n, options, w.built("bench.openmpi"), items...)
	}
}

func mpirunOpenMPI(ctx context.Context, n int, options []string, program string, args ...string) ([]byte, error) {
	all := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "-n", strconv.Itoa(n)}
	all = append(append(all, options...), program)
	return guest(ctx, nil, "mpirun.openmpi", append(all, args...)...)
}

// mpich runs the C program with MPICH; the environment selects its channel.
func mpich(n int, env ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		return mpirunMPICH(ctx, n, env, w.built("bench.mpich"), items...)
	}
}

func mpirunMPICH(ctx context.Context, n int, env []string, program string, args ...string) ([]byte, error) {
	all := []string{"-bind-to", "none", "-n", strconv.Itoa(n), program}
	return guest(ctx, env, "mpirun.mpich", append(all, args...)...)
}

// raw runs two processes with a plain connection.
func raw(path string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		return guest(ctx, nil, w.built("raw"), append([]string{"-path", path}, items...)...)
	}
}

// niceness is the niceness of all contenders, because peers run guests with it (see peer/launch).
// Other work on the machine therefore has the same priority over every contender.
const niceness = "19"

// guest runs a contender that is not a job of this project.
func guest(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	out, err := output(ctx, env, "nice", append([]string{"-n", niceness, name}, args...)...)
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return out, err
}

// output runs a command with additions to the environment, and returns its output.
func output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Env = &stderr, append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // mpirun then ends its processes
	cmd.WaitDelay = 10 * time.Second
	grid.EndWithParent(cmd)
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s", name, err, &stderr)
	}
	return out, nil
}
