//go:build !race

package mpj

import (
	"context"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// TestWarmCollectivesAllocateNothing checks that a repeated small collective over shared memory
// allocates nothing at either rank. It does not run under the race detector, with which sync.Pool
// drops items.
func TestWarmCollectivesAllocateNothing(t *testing.T) {
	number, sum := TypeOf[float64](), OpOf(Sum[float64])
	calls := map[string]func(c *Comm, one, two, out []float64) error{
		"Barrier":            func(c *Comm, _, _, _ []float64) error { return Barrier(c) },
		"Bcast":              func(c *Comm, one, _, _ []float64) error { return Bcast(c, one, 0) },
		"Gather":             func(c *Comm, one, two, _ []float64) error { return Gather(c, one, two, 0) },
		"Scatter":            func(c *Comm, one, two, _ []float64) error { return Scatter(c, two, one, 0) },
		"Allgather":          func(c *Comm, one, two, _ []float64) error { return Allgather(c, one, two) },
		"Alltoall":           func(c *Comm, _, two, out []float64) error { return Alltoall(c, two, out) },
		"Reduce":             func(c *Comm, one, two, _ []float64) error { return Reduce(c, one, two[:8], Sum, 0) },
		"Allreduce":          func(c *Comm, one, two, _ []float64) error { return Allreduce(c, one, two[:8], Sum) },
		"ReduceScatterBlock": func(c *Comm, one, two, _ []float64) error { return ReduceScatterBlock(c, two, one, Max) },
		"Scan":               func(c *Comm, one, two, _ []float64) error { return Scan(c, one, two[:8], Sum) },
		"Exscan":             func(c *Comm, one, two, _ []float64) error { return Exscan(c, one, two[:8], Sum) },
		"AllreduceTyped": func(c *Comm, one, two, _ []float64) error {
			return AllreduceTyped(c, number.At(one, 0, 8), number.At(two, 0, 8), sum)
		},
		"ReduceTyped": func(c *Comm, one, two, _ []float64) error {
			return ReduceTyped(c, number.At(one, 0, 8), number.At(two, 0, 8), sum, 0)
		},
		"ScanTyped": func(c *Comm, one, two, _ []float64) error {
			return ScanTyped(c, number.At(one, 0, 8), number.At(two, 0, 8), sum)
		},
	}
	const runs = 200
	for name, call := range calls {
		err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 1, Rings: true}), func(w *World) error {
			one, two, out := make([]float64, 8), make([]float64, 16), make([]float64, 16)
			var failed error
			f := func() { failed = first(failed, call(w.Comm, one, two, out), Barrier(w.Comm)) }
			for range 20 {
				f()
			}
			if w.Rank() == 1 {
				for range runs + 1 {
					f()
				}
				return failed
			}
			if n := testing.AllocsPerRun(runs, f); n >= 1 {
				t.Errorf("%s: %v allocations at both ranks together", name, n)
			}
			return failed
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
