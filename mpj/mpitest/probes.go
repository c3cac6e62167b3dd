package mpitest

import (
	"cmp"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Point-to-point communication: probe, matched probe and cancel (MPI 4.0, 3.8).
var probes = []Test{
	{"probe describes the message that recv gets", 2, true, probe},
	{"iprobe eventually finds a message, and finds no message that was not sent", 2, true, iprobe},
	{"only the matched probe can receive its message", 2, true, mprobe},
	{"improbe eventually finds a message", 2, true, improbe},
	{"a matched message may be long, or too long", 2, true, mprobeLong},
	{"an unmatched receive can be cancelled", 2, false, cancelReceive},
	{"a complete receive cannot be cancelled", 2, false, cancelLate},
}

func probe(w *mpj.World) error {
	for i, length := range lengths {
		if w.Rank() == 1 {
			if err := mpj.Send(w.Comm, numbers[int32](i, length), 0, i); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			s, err := mpj.Probe(w.Comm, mpj.AnySource, mpj.AnyTag)
			if err := cmp.Or(err, equal("status", s, mpj.Status{Source: 1, Tag: i, Size: 4 * length})); err != nil {
				return err
			}
			got := make([]int32, mpj.Count[int32](s))
			_, err = mpj.Recv(w.Comm, got, s.Source, s.Tag)
			if err := cmp.Or(err, same("message", got, numbers[int32](i, length))); err != nil {
				return err
			}
		}
	}
	return nil
}

func iprobe(w *mpj.World) error {
	if w.Rank() == 1 {
		return mpj.Send(w.Comm, []int{1}, 0, 6)
	}
	for found := false; w.Rank() == 0 && !found; {
		_, other, err := mpj.Iprobe(w.Comm, 1, 7)
		if err := cmp.Or(err, equal("a message that no rank sends", other, false)); err != nil {
			return err
		}
		if _, found, err = mpj.Iprobe(w.Comm, 1, 6); err != nil {
			return err
		}
	}
	if w.Rank() > 1 {
		return nil
	}
	_, err := mpj.Recv(w.Comm, make([]int, 1), 1, 6)
	return err
}

// mprobe matches the first of two messages; a receive then gets the second.
func mprobe(w *mpj.World) error {
	if w.Rank() == 1 {
		return cmp.Or(mpj.Send(w.Comm, []int{1, 1}, 0, 2), mpj.Send(w.Comm, []int{2, 2}, 0, 2))
	}
	if w.Rank() > 1 {
		return nil
	}
	one, two := make([]int, 2), make([]int, 2)
	m, s, err := mpj.Mprobe(w.Comm, mpj.AnySource, 2)
	if err := cmp.Or(err, equal("status", s, mpj.Status{Source: 1, Tag: 2, Size: 16})); err != nil {
		return err
	}
	_, err1 := mpj.Recv(w.Comm, two, 1, 2)
	s, err2 := mpj.Mrecv(m, one)
	_, err3 := mpj.Mrecv(m, one)
	return cmp.Or(err1, err2, equal("source", s.Source, 1), same("matched", one, []int{1, 1}), same("received", two, []int{2, 2}),
		fails("second Mrecv", err3, mpj.ErrRequest))
}

func improbe(w *mpj.World) error {
	if w.Rank() == 1 {
		return mpj.Send(w.Comm, []int{3}, 0, 2)
	}
	for w.Rank() == 0 {
		m, s, ok, err := mpj.Improbe(w.Comm, mpj.AnySource, mpj.AnyTag)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		buf := make([]int, 1)
		r, err := mpj.Imrecv(m, buf)
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return cmp.Or(err, equal("tag", s.Tag, 2), equal("message", buf[0], 3))
	}
	return nil
}

func mprobeLong(w *mpj.World) error {
	const length = 50000
	if w.Rank() == 1 {
		long := numbers[int](0, length)
		return cmp.Or(mpj.Send(w.Comm, long, 0, 0), mpj.Send(w.Comm, long, 0, 1))
	}
	if w.Rank() > 1 {
		return nil
	}
	whole, less := make([]int, length), make([]int, length/2)
	m, _, err := mpj.Mprobe(w.Comm, 1, 0)
	if err != nil {
		return err
	}
	if _, err := mpj.Mrecv(m, whole); err != nil {
		return err
	}
	if m, _, err = mpj.Mprobe(w.Comm, 1, 1); err != nil {
		return err
	}
	_, err = mpj.Mrecv(m, less)
	return cmp.Or(same("message", whole, numbers[int](0, length)), fails("too short", err, mpj.ErrTruncate))
}

// cancelReceive tests section 3.8.4: a cancelled receive has no effect, so the message goes to the
// next receive.
func cancelReceive(w *mpj.World) error {
	if w.Rank() == 1 {
		if _, err := mpj.Recv(w.Comm, []byte{0}, 0, 1); err != nil {
			return err
		}
		return mpj.Send(w.Comm, []int{4}, 0, 0)
	}
	if w.Rank() > 1 {
		return nil
	}
	lost, got := make([]int, 1), make([]int, 1)
	r, err := mpj.Irecv(w.Comm, lost, mpj.AnySource, 0)
	if err := cmp.Or(err, r.Cancel()); err != nil {
		return err
	}
	s, err := r.Wait()
	if err := cmp.Or(err, equal("cancelled", s.Cancelled, true), mpj.Send(w.Comm, []byte{1}, 1, 1)); err != nil {
		return err
	}
	s, err = mpj.Recv(w.Comm, got, 1, 0)
	return cmp.Or(err, equal("cancelled", s.Cancelled, false), equal("cancelled receive got", lost[0], 0), equal("message", got[0], 4))
}

func cancelLate(w *mpj.World) error {
	if w.Rank() == 1 {
		return cmp.Or(mpj.Send(w.Comm, []int{4}, 0, 0), mpj.Send(w.Comm, []int{5}, 0, 1))
	}
	if w.Rank() > 1 {
		return nil
	}
	got := make([]int, 1)
	r, err := mpj.Irecv(w.Comm, got, 1, 0)
	if err != nil {
		return err
	}
	if _, err := mpj.Recv(w.Comm, make([]int, 1), 1, 1); err != nil { // so the other message has arrived
		return err
	}
	if err := r.Cancel(); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, equal("cancelled", s.Cancelled, false), equal("message", got[0], 4))
}
