//go:build !wasip1

package mpj

import (
	"context"
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	joining "github.com/p2pmpi/p2pmpi/mpj/internal/join"
	"github.com/p2pmpi/p2pmpi/mpj/internal/link"
)

// join joins the job of the peer that started this process, or returns a world of one.
func join(ctx context.Context) (*World, error) {
	if !joining.Inherited() {
		return alone(ctx), nil
	}
	e, l, err := joining.Job(ctx, exit)
	if err != nil {
		return nil, err
	}
	w := newWorld(e, l.Self(), l.View().N, peerJob{l})
	w.setPlaces(l.Places())
	return w, nil
}

// exitLost is the exit status of a process that has lost its peer.
const exitLost = joining.ExitLost

// exit ends the process because its peer has ended, so that the limits of the process are no longer
// enforced and its result is no longer wanted.
func exit(err error) {
	fmt.Fprintln(os.Stderr, "mpj: exiting, because the peer is gone:", err)
	os.Exit(exitLost)
}

// peerJob is the job of the peer at the other end of the control socket.
type peerJob struct{ *link.Link }

// Finalize implements job.
func (j peerJob) Finalize(e *engine.Engine) error {
	sums, summed := e.Sums()
	return j.Link.Finalize(e.Context(), sums, summed)
}

// Abort implements job. The peer ends this process.
func (j peerJob) Abort(code int, reason string) {
	if err := j.Link.Abort(code, reason); err != nil {
		exit(err)
	}
	select {}
}

// alone returns the world of a program that was started by hand.
func alone(ctx context.Context) *World {
	self, v := view.Process{}, view.New(1, 1)
	return newWorld(engine.New(ctx, joining.Config(self, v, nil)), self, 1, aloneJob{})
}

// aloneJob is a job that consists of this process only.
type aloneJob struct{}

func (aloneJob) Finalize(*engine.Engine) error { return nil }
func (aloneJob) Printed() ([2]uint64, bool)    { return [2]uint64{}, false }
func (aloneJob) Skip([2]uint64) error          { return nil }
func (aloneJob) Close()                        {}

func (aloneJob) Abort(code int, reason string) {
	fmt.Fprintln(os.Stderr, "mpj: abort:", reason)
	os.Exit(code)
}
