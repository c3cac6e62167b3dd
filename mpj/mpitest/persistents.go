package mpitest

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Point-to-point communication: persistent requests (MPI 4.0, 3.9).
var persistents = []Test{
	{"persistent requests in every mode start again", 1, true, restart},
	{"a persistent receive may have wildcards", 1, true, restartWild},
	{"a persistent request that was not started is complete", 1, true, unstarted},
	{"a persistent request has an empty status when it is inactive again", 1, true, inactiveAgain},
	{"wrong uses of persistent requests are errors", 1, true, restartWrong},
}

func restart(w *mpj.World) error {
	if err := w.BufferAttach(1 << 20); err != nil {
		return err
	}
	for _, m := range modes {
		sent, got := make([]int32, 100), make([]int32, 100)
		in, err1 := mpj.RecvInit(w.Comm, got, left(w.Comm), 0)
		out, err2 := m.init(w.Comm, sent, right(w.Comm), 0)
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		for round := range int32(5) {
			for i := range sent {
				sent[i] = round * int32(i)
			}
			err := in.Start()
			if err := cmp.Or(err, mpj.Barrier(w.Comm), mpj.Startall(out)); err != nil {
				return err
			}
			_, err = mpj.Waitall(in, out)
			if err := cmp.Or(err, same("message", got, sent)); err != nil {
				return fmt.Errorf("%s, round %d: %w", m.name, round, err)
			}
		}
		in.Free()
		out.Free()
	}
	_, err := w.BufferDetach()
	return err
}

func restartWild(w *mpj.World) error {
	got := make([]int, 1)
	r, err := mpj.RecvInit(w.Comm, got, mpj.AnySource, mpj.AnyTag)
	if err != nil {
		return err
	}
	for round := range 3 {
		if err := cmp.Or(r.Start(), mpj.Send(w.Comm, []int{10 * round}, right(w.Comm), round)); err != nil {
			return err
		}
		s, err := r.Wait()
		if err := cmp.Or(err, equal("tag", s.Tag, round), equal("source", s.Source, left(w.Comm)), equal("message", got[0], 10*round)); err != nil {
			return err
		}
	}
	return nil
}

func unstarted(w *mpj.World) error {
	r, err := mpj.SendInit(w.Comm, []int{1}, w.Rank(), 0)
	if err != nil {
		return err
	}
	_, waited := r.Wait()
	_, done, tested := r.Test()
	return cmp.Or(waited, tested, equal("complete", done, true))
}

func inactiveAgain(w *mpj.World) error {
	got := make([]int, 1)
	r, err := mpj.RecvInit(w.Comm, got, left(w.Comm), 3)
	if err := cmp.Or(err, r.Start(), mpj.Send(w.Comm, []int{5}, right(w.Comm), 3)); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, equal("source", s.Source, left(w.Comm)), equal("size", s.Size, 8), noStatus(r))
}

// noStatus checks that an inactive request is complete, with an empty status, in every call.
func noStatus(r *mpj.Request) error {
	waited, err1 := r.Wait()
	tested, done, err2 := r.Test()
	got, also, err3 := r.GetStatus()
	all, err4 := mpj.Waitall(r)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return err
	}
	return cmp.Or(equal("Wait", waited, noMessage), equal("Test", tested, noMessage), equal("GetStatus", got, noMessage), equal("Waitall", all[0], noMessage),
		equal("complete", done && also, true))
}

func restartWrong(w *mpj.World) error {
	got := make([]int, 1)
	r, err := mpj.RecvInit(w.Comm, got, w.Rank(), 0)
	if err := cmp.Or(err, r.Start()); err != nil {
		return err
	}
	active := r.Start()
	if err := mpj.Send(w.Comm, []int{1}, w.Rank(), 0); err != nil {
		return err
	}
	_, err = r.Wait()
	r.Free()
	freed := r.Start()
	once, err2 := mpj.Isend(w.Comm, []int{1}, mpj.ProcNull, 0)
	restarted := once.Start()
	_, err3 := once.Wait()
	return cmp.Or(err, err2, err3, fails("Start of an active request", active, mpj.ErrRequest), fails("Start of a freed request", freed, mpj.ErrRequest),
		fails("Start of an Isend", restarted, mpj.ErrRequest))
}
