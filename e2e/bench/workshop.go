package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// A workshop is the environment of the runners.
type workshop struct {
	dir     string // directory of build results and temporary files
	grid    *grid.Grid
	relayed *grid.Grid // peers that reach each other through a relay, or nil if not needed
	class   string     // class of the NAS kernels
	profile string     // directory for CPU profiles, or empty for none
}

func (w *workshop) built(name string) string { return filepath.Join(w.dir, name) }

// openWorkshop builds the programs that these contenders need, and boots peers.
func openWorkshop(ctx context.Context, field []contender, o options) (*workshop, error) {
	dir, err := os.MkdirTemp("", "p2pmpi-bench-")
	if err != nil {
		return nil, err
	}
	w := &workshop{dir: dir, class: nasClass, profile: o.profile}
	if o.quick {
		w.class = nasQuickClass
	}
	if err := w.equip(ctx, field, o); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// The grid: enough peers for two replicas of two ranks, each with enough slots for all ranks of a
// job.
const (
	gridPeers = 4
	gridSlots = 4
)

func (w *workshop) equip(ctx context.Context, field []contender, o options) error {
	packages := append(grid.Commands, "e2e/bench/prog", "e2e/bench/raw")
	kernels := wantedKernels(field, o)
	for _, kernel := range kernels {
		packages = append(packages, "examples/"+kernel)
	}
	if err := grid.Build(ctx, w.dir, packages...); err != nil {
		return err
	}
	for _, library := range []string{"openmpi", "mpich"} {
		if !needed(field, library) {
			continue
		}
		if err := w.compile(ctx, library, append(kernels, "bench")); err != nil {
			return err
		}
	}
	var err error
	if w.grid, err = grid.Boot(ctx, w.dir, w.dir, gridPeers, gridSlots); err != nil || !needed(field, relayed) {
		return err
	}
	dir := w.built("relayed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	w.relayed, err = grid.BootRelayed(ctx, w.dir, dir, gridPeers, gridSlots)
	return err
}

// compile compiles C programs with a library, as NAME.LIBRARY.
func (w *workshop) compile(ctx context.Context, library string, programs []string) error {
	root, err := grid.Root(ctx)
	if err != nil {
		return err
	}
	for _, name := range programs {
		source := filepath.Join(root, "e2e/bench/c", name+".c")
		if _, err := output(ctx, nil, "mpicc."+library, "-O3", "-o", w.built(name+"."+library), source, "-lm"); err != nil {
			return err
		}
	}
	return nil
}

// wantedKernels returns the NAS programs that any contender runs.
func wantedKernels(field []contender, o options) []string {
	var kernels []string
	for _, kernel := range plan.Kernels {
		if slices.ContainsFunc(field, func(c contender) bool { return slices.Contains(c.tests, kernel) && o.wants(c, kernel) }) {
			kernels = append(kernels, kernel)
		}
	}
	return kernels
}

func needed(field []contender, what string) bool {
	return slices.ContainsFunc(field, func(c contender) bool { return c.needs == what })
}

func (w *workshop) close() {
	for _, g := range []*grid.Grid{w.grid, w.relayed} {
		if g != nil {
			g.Close()
		}
	}
	os.RemoveAll(w.dir)
}
