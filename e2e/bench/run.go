package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// perRun bounds one run of one contender.
const perRun = 4 * time.Minute

// A runner makes the items, as words, and returns what was printed.
type runner func(ctx context.Context, w *workshop, items []string) ([]byte, error)

// A workshop is what runners work with.
type workshop struct {
	dir     string // all that is built, and nothing that should stay
	grid    *grid.Grid
	profile string // folder for CPU profiles; "" for none
}

// ours runs prog as a job of n ranks with r replicas.
func ours(n, r int, options ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		args := append([]string{"-n", strconv.Itoa(n), "-r", strconv.Itoa(r), "--timeout", perRun.String()}, options...)
		if w.profile == "" {
			return w.grid.Run(ctx, w.dir, append(append(args, w.built("prog")), items...)...)
		}
		args = append(args, "-o", "cpu.pprof", w.built("prog"), "-profile", "cpu.pprof")
		return w.grid.Run(ctx, w.profile, append(args, items...)...)
	}
}

// openMPI runs the C program. No library binds processes to processors here: that
// is what all can be had with.
func openMPI(n int, options ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		args := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "-n", strconv.Itoa(n)}
		args = append(append(args, options...), w.built("bench.openmpi"))
		return output(ctx, nil, "mpirun.openmpi", append(args, items...)...)
	}
}

// mpich runs the C program; its channel is chosen by the environment.
func mpich(n int, env ...string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		args := []string{"-bind-to", "none", "-n", strconv.Itoa(n), w.built("bench.mpich")}
		return output(ctx, env, "mpirun.mpich", append(args, items...)...)
	}
}

// raw runs two processes with nothing but a connection.
func raw(path string) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		return output(ctx, nil, w.built("raw"), append([]string{"-path", path}, items...)...)
	}
}

// output runs a command with additions to the environment.
func output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Env = &stderr, append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // mpirun then ends its processes
	cmd.WaitDelay = 10 * time.Second
	grid.EndWithParent(cmd)
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, &stderr)
	}
	return out, nil
}

func (w *workshop) built(name string) string { return filepath.Join(w.dir, name) }

// openWorkshop builds what these contenders need.
func openWorkshop(ctx context.Context, field []contender) (*workshop, error) {
	dir, err := os.MkdirTemp("", "p2pmpi-bench-")
	if err != nil {
		return nil, err
	}
	w := &workshop{dir: dir}
	if err := w.equip(ctx, field); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// The grid: enough peers for two replicas of two ranks, each with enough slots for
// all ranks of a job.
const (
	gridPeers = 4
	gridSlots = 4
)

func (w *workshop) equip(ctx context.Context, field []contender) error {
	const here = "github.com/p2pmpi/p2pmpi/e2e/bench/"
	if err := grid.Build(ctx, w.dir, append(grid.Commands, here+"prog", here+"raw")...); err != nil {
		return err
	}
	for _, library := range []string{"openmpi", "mpich"} {
		if !needed(field, "mpirun."+library) {
			continue
		}
		source, err := sourceOf(ctx, here+"prog")
		if err != nil {
			return err
		}
		_, err = output(ctx, nil, "mpicc."+library, "-O3", "-o", w.built("bench."+library), filepath.Join(source, "..", "c", "bench.c"))
		if err != nil {
			return err
		}
	}
	var err error
	w.grid, err = grid.Boot(ctx, w.dir, w.dir, gridPeers, gridSlots)
	return err
}

func needed(field []contender, command string) bool {
	for _, c := range field {
		if c.needs == command {
			return true
		}
	}
	return false
}

// sourceOf returns the folder of a package.
func sourceOf(ctx context.Context, path string) (string, error) {
	out, err := output(ctx, nil, "go", "list", "-f", "{{.Dir}}", path)
	return string(bytes.TrimSpace(out)), err
}

func (w *workshop) close() {
	if w.grid != nil {
		w.grid.Close()
	}
	os.RemoveAll(w.dir)
}
