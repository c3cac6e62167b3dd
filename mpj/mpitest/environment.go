package mpitest

import (
	"cmp"
	"errors"
	"strings"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Environmental management (MPI 4.0, chapter 9).
var environment = []Test{
	{"wtime does not decrease", 1, true, wtime},
	{"random numbers are the same at all replicas and differ between ranks", 1, true, random},
	{"an error names call, rank and argument", 1, true, errorText},
}

func wtime(w *mpj.World) error {
	last := w.Wtime()
	for range 20 {
		now := w.Wtime()
		if err := equal("time has decreased", now < last, false); err != nil {
			return err
		}
		last = now
	}
	return equal("resolution", w.Wtick() > 0 && w.Wtick() < 1, true)
}

// random compares the numbers that each rank draws with the numbers that it sends and gets back.
// With replicas, the receivers get the messages of only one replica, so this checks that all
// replicas of a rank draw the same numbers.
func random(w *mpj.World) error {
	mine := []uint64{w.Rand(5).Uint64(), w.RandomSeed()}
	everybody, again := make([]uint64, 2*w.Size()), make([]uint64, 2*w.Size())
	err := cmp.Or(mpj.Allgather(w.Comm, mine, everybody), mpj.Allgather(w.Comm, []uint64{w.Rand(5).Uint64(), mine[1]}, again),
		same("drawn again", again, everybody), same("own", everybody[2*w.Rank():2*w.Rank()+2], mine))
	for i := range w.Size() {
		if i != w.Rank() {
			err = cmp.Or(err, equal("two ranks drew the same number", everybody[2*i] == mine[0], false))
		}
	}
	return err
}

func errorText(w *mpj.World) error {
	err := mpj.Send(w.Comm, []int{1}, w.Size(), 0)
	var e *mpj.Error
	if !errors.As(err, &e) {
		return fails("Send", err, mpj.ErrRank)
	}
	return cmp.Or(equal("call", e.Op, "Send"), equal("rank", e.Rank, w.Rank()), equal("class", e.Class, mpj.ErrRank),
		equal("names the argument", strings.Contains(e.Error(), "dest "), true))
}
