package mpj

import (
	"context"

	"github.com/p2pmpi/p2pmpi/mpj/internal/guest"
)

// join joins the job for which this module was started. The host has the engine and the control
// socket.
func join(ctx context.Context) (*World, error) {
	e, info, err := guest.Join(ctx)
	if err != nil {
		return nil, err
	}
	w := newWorld(e, info.Self, info.Ranks, hostJob{e})
	w.setPlaces(info.Places)
	return w, nil
}

// hostJob is a job in which the host of the module takes part.
type hostJob struct{ engine *guest.Engine }

func (j hostJob) Finalize(e *guest.Engine) error { return e.Finalize() }

// Printed implements job.
func (j hostJob) Printed() ([2]uint64, bool) { return j.engine.Printed() }

// Skip implements job.
func (j hostJob) Skip(records [2]uint64) error { return j.engine.Skip(records) }

// Close implements job. The host closes the job with its engine.
func (j hostJob) Close() {}

// Abort implements job.
func (j hostJob) Abort(code int, reason string) { j.engine.Abort(code, reason) }

// RunLocal runs worlds within a native process. In a module it fails with ErrUnsupported, because a
// module is a single process.
func RunLocal(context.Context, int, func(*World) error) error {
	return failf(ErrUnsupported, "RunLocal", "a WebAssembly module has one thread: p2prun --local 3 -n 3 runs it as three ranks")
}

// A detector does nothing in a module, because deadlock detection inspects goroutines, which the
// host cannot inspect.
type detector struct{}

func (*detector) await() {}

func (w *World) detect(uint64) {}
