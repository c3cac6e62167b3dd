package mpj

import (
	"cmp"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A World is the membership of this process in a job. Its Comm is the communicator of all ranks.
type World struct {
	*Comm

	self    *Comm
	replica int
	job     job

	checks   bool      // whether P2PMPI_CHECK is set
	detector *detector // nil without checks, and with replicas

	checkpointed int // number of ids used at the first Checkpoint, or 0 before it

	finalize sync.Once
	err      error // result of Finalize
}

// A job is the job of a World: the job of the peer that started this process, or a job within this
// process.
type job interface {
	// Finalize reports that this process, with engine e, is done, and passes on a summary of its
	// sent messages, if known.
	Finalize(e *engine.Engine) error
	// Printed returns the number of records (lines, or pieces of long lines) that this process has
	// written to each output stream, after the user has received them. It returns false if the user
	// has not received them in time. Skip makes this process, which has written fewer records,
	// continue after the given records.
	Printed() (records [2]uint64, ok bool)
	Skip(records [2]uint64) error
	// Close leaves the job, whether finalized or not.
	Close()
	// Abort ends the whole job with the status code. It does not return.
	Abort(code int, reason string)
}

func newWorld(e *engine.Engine, self view.Process, size int, j job) *World {
	checks, _ := checksWanted() // Init and RunLocal have handled the error
	forced, invalid := forcedByUser()
	w := &World{replica: self.Replica, job: j, checks: checks}
	w.Comm = &Comm{world: w}
	w.Comm.base.Face = w.Comm
	core.NewWorld(&w.Comm.base, e, self.Rank, size, checks)
	core.SetAlgorithms(&w.Comm.base, forced, invalid)
	w.self = w.heir()
	core.NewSelf(&w.base, &w.self.base)
	return w
}

// setPlaces sets the machine and the cluster of each rank.
func (w *World) setPlaces(numbers [][2]int) {
	var places []core.Place
	for _, p := range numbers {
		places = append(places, core.Place{Machine: p[0], Cluster: p[1]})
	}
	core.SetPlaces(&w.Comm.base, places)
}

// Self returns the communicator that contains only this rank, like MPI_COMM_SELF. Use it for a
// library that takes a communicator if each rank uses the library by itself.
func (w *World) Self() *Comm { return w.self }

// Finalize ends this process's part in the job. Each process calls Finalize last, after it has
// received all its messages; only then is its rank done. Finalize waits until every message that
// this process sent has arrived. For a long message, it waits until the message has been received or
// its receiver has also called Finalize.
//
// Finalize returns ErrPending, with a list of the messages, if messages were never received. With
// P2PMPI_CHECK, the list includes requests that the program did not wait for. If a collective has
// failed at another rank, and this rank has not got the error yet, Finalize returns the error of the
// ranks that wait in that collective. In all these cases the rank is still done.
func (w *World) Finalize() error {
	w.finalize.Do(func() {
		err := w.engine().Flush()
		if err == nil && w.detector != nil {
			w.detector.await()
			err = w.engine().Flush()
		}
		if err == nil {
			left := w.leftOver()
			err = cmp.Or(w.job.Finalize(w.engine()), left)
		}
		w.engine().Close()
		w.job.Close()
		w.err = w.wrap("Finalize", err)
	})
	return w.err
}

// Abort ends the whole job at once. p2prun exits with code, which is 1 to 125, and shows the
// reason. Abort does not return.
func (w *World) Abort(code int, reason string) { w.job.Abort(code, reason) }

// Wtime returns the seconds since an arbitrary moment in the past, the same at all replicas.
// Programs must use it instead of package time to measure time. After the world has ended, Wtime no
// longer changes.
func (w *World) Wtime() float64 { return w.engine().Wtime() }

// Wtick returns the resolution of Wtime in seconds.
func (w *World) Wtick() float64 { return 1e-9 }

// Replica returns the number of this replica within its rank, 0..r-1. It is for debugging. The
// results and messages of a program must not depend on it, because all replicas of a rank must act
// in the same way.
func (w *World) Replica() int { return w.replica }
