package mpj

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/seam/engine"
)

// A World is this process's membership of a job. Its Comm is the communicator
// of all ranks.
type World struct {
	*Comm

	self    *Comm
	replica int
	job     job
	places  []place // by world rank; nil: all on one machine

	identities *identities
	forced     forced
	checks     bool      // P2PMPI_CHECK
	detector   *detector // nil without checks, and with replicas
	ledger     ledger    // empty without checks

	buffered sendBuffer // of buffered mode

	active       atomic.Int64 // requests, and messages of Mprobe, that are under way
	checkpointed int          // ids used at the first Checkpoint; 0: there was none

	finalize sync.Once
	err      error // of Finalize
}

// A job is what a World belongs to: the one of the peer that started this
// process, or one within the process.
type job interface {
	// Finalize says that this process, which has engine e, needs and owes nothing more,
	// and what it has sent in all, if that is known.
	Finalize(e *engine.Engine) error
	// Printed returns how many records (lines, or pieces of long ones) of each output
	// stream this process has written, once the user has them; not ok if that takes
	// long. Skip says that this process, which has written less, goes on behind them.
	Printed() (records [2]uint64, ok bool)
	Skip(records [2]uint64) error
	// Close leaves the job, whether finalized or not.
	Close()
	// Abort ends the whole job with the status code. It does not return.
	Abort(code int, reason string)
}

// A place says where a rank runs. Ranks with the same machine share memory;
// ranks with the same cluster are near each other.
type place struct{ machine, cluster int }

func newWorld(e *engine.Engine, self view.Process, size int, j job) *World {
	checks, _ := checksWanted() // Init and RunLocal have seen to the error
	w := &World{replica: self.Replica, job: j, checks: checks, forced: forcedByUser()}
	w.Comm = &Comm{engine: e, world: w, id: worldID, rank: self.Rank, size: size, named: size, name: "world"}
	w.identities = newIdentities(w.Comm)
	w.self = w.Comm.child(selfID, selfID, []int{self.Rank})
	w.self.SetName("self")
	return w
}

// Self returns the communicator of this rank alone, MPI_COMM_SELF: for a library
// that takes a communicator, when each rank is to use it by itself.
func (w *World) Self() *Comm { return w.self }

// Finalize ends this process's part in the job. It waits until every message
// that it sent has arrived, a long one until it is received, or its receiver is
// in Finalize too. Each process calls it last, once it has received all messages
// meant for it; only then is its rank done. Messages that came and were never
// received are an error, ErrPending, that names them, and so are, with
// P2PMPI_CHECK, requests that nobody has waited for; the rank is done all the
// same. A collective that has failed at another rank, of which this one has not
// heard, is an error, too: the one that a rank gets that waits in it.
func (w *World) Finalize() error {
	w.finalize.Do(func() {
		err := w.engine.Flush()
		if err == nil && w.detector != nil {
			w.detector.await()
			err = w.engine.Flush()
		}
		if err == nil {
			left := w.leftOver()
			err = cmp.Or(w.job.Finalize(w.engine), left)
		}
		w.engine.Close()
		w.job.Close()
		w.err = w.wrap("Finalize", err)
	})
	return w.err
}

// Abort ends the whole job at once. p2prun exits with code, which is 1 to 125,
// and shows the reason. Abort does not return.
func (w *World) Abort(code int, reason string) { w.job.Abort(code, reason) }

// Wtime returns seconds since some moment in the past, the same at all
// replicas. A program measures time with it and not with package time. In a
// world that has ended the time stands still.
func (w *World) Wtime() float64 { return w.engine.Wtime() }

// Wtick returns the resolution of Wtime in seconds.
func (w *World) Wtick() float64 { return 1e-9 }

// Replica returns which replica of its rank this process is, 0..r-1. It is for
// people who look for a fault. A program that computes or sends anything that
// depends on it breaks the promise that all replicas of a rank do the same.
func (w *World) Replica() int { return w.replica }
