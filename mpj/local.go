//go:build !wasip1

package mpj

import (
	"context"
	"fmt"
	"runtime"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// RunLocal runs program as the n ranks of a world within this process, each in its own goroutine,
// and returns when all ranks have returned. The first error that a rank returns ends the world for
// all ranks, and RunLocal returns it. If a rank calls Abort, RunLocal returns an error with the
// status and the reason. A program that returns nil without calling Finalize is finalized. RunLocal
// is for tests, examples and debugging.
func RunLocal(ctx context.Context, n int, program func(*World) error) error {
	if n < 1 {
		return failf(ErrArg, "RunLocal", "%d ranks", n)
	}
	if _, err := checksWanted(); err != nil {
		return err
	}
	return runIn(localworld.New(ctx, localworld.Config{Ranks: n, Replicas: 1}), program)
}

// runIn runs program as every process of a job.
func runIn(job *localworld.World, program func(*World) error) error {
	return job.Run(func(p view.Process, e *engine.Engine) error {
		w := newWorld(e, p, job.Ranks(), localJob{job, p})
		if w.checks {
			w.detect(currentGoroutine())
		}
		if err := program(w); err != nil {
			return err
		}
		return w.Finalize()
	})
}

// localJob is a job within this process.
type localJob struct {
	job  *localworld.World
	self view.Process
}

func (j localJob) Finalize(e *engine.Engine) error {
	if sums, summed := e.Sums(); summed {
		j.job.Compare(j.self, sums)
	}
	j.job.Finish(j.self)
	return nil
}

// Printed implements job. All processes share one output, which is not counted.
func (j localJob) Printed() ([2]uint64, bool) { return [2]uint64{}, true }

func (j localJob) Skip([2]uint64) error { return nil }

func (j localJob) Close() {}

// Abort implements job. It ends the goroutine of the calling rank.
func (j localJob) Abort(code int, reason string) {
	j.job.Fail(fmt.Errorf("rank %d aborted with status %d: %s", j.self.Rank, code, reason))
	runtime.Goexit()
}
