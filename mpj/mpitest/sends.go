package mpitest

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Point-to-point communication: modes and their semantics (MPI 4.0, 3.2 to 3.7).
var sends = []Test{
	{"a blocking send delivers in every mode", 1, true, blockingModes},
	{"a nonblocking send delivers in every mode", 1, true, startedModes},
	{"messages do not overtake each other", 2, true, order},
	{"messages of all lengths keep their order", 2, true, orderOfLengths},
	{"tags are received in any order", 2, true, orderOfTags},
	{"a synchronous send waits for its receive", 2, true, synchronous},
	{"a buffered send does not wait", 2, true, buffered},
	{"a full buffer is an error", 1, true, bufferFull},
	{"ranks may send up to the eager limit before they receive", 2, true, exchange},
	{"every rank may send to itself", 1, true, toSelf},
	{"sendrecv exchanges in a ring", 1, true, sendrecv},
	{"sendrecv-replace exchanges in place", 1, true, sendrecvReplace},
	{"the null process discards sends and completes receives", 1, true, nullProcess},
	{"elements of every type arrive", 1, true, everyElement},
	{"values of any type arrive", 1, true, values},
}

// A mode is one of MPI's four send modes (3.4).
type mode struct {
	name  string
	send  func(c *mpj.Comm, buf []int32, dest, tag int) error
	start func(c *mpj.Comm, buf []int32, dest, tag int) (*mpj.Request, error)
	init  func(c *mpj.Comm, buf []int32, dest, tag int) (*mpj.Request, error)
}

var modes = []mode{
	{"standard", mpj.Send[int32], mpj.Isend[int32], mpj.SendInit[int32]},
	{"buffered", mpj.Bsend[int32], mpj.Ibsend[int32], mpj.BsendInit[int32]},
	{"synchronous", mpj.Ssend[int32], mpj.Issend[int32], mpj.SsendInit[int32]},
	{"ready", mpj.Rsend[int32], mpj.Irsend[int32], mpj.RsendInit[int32]},
}

// lengths are the lengths of messages: empty, short, and beyond the eager limit.
var lengths = []int{0, 1, 1000, 50000}

// inModes exchanges a message with the neighbours in every mode and length. send starts a send and
// returns a function that waits for its end.
func inModes(w *mpj.World, send func(m mode, buf []int32, dest int) (func() error, error)) error {
	if err := w.BufferAttach(1 << 20); err != nil {
		return err
	}
	for _, m := range modes {
		for _, length := range lengths {
			got, sent := make([]int32, length), numbers[int32](w.Rank(), length)
			r, err := mpj.Irecv(w.Comm, got, left(w.Comm), 3)
			if err != nil {
				return err
			}
			if err := mpj.Barrier(w.Comm); err != nil { // ready mode requires a posted receive
				return err
			}
			wait, err := send(m, sent, right(w.Comm))
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			s, err := r.Wait()
			err = cmp.Or(err, wait(), equal("status", s, mpj.Status{Source: left(w.Comm), Tag: 3, Size: 4 * length}),
				same("message", got, numbers[int32](left(w.Comm), length)))
			if err != nil {
				return fmt.Errorf("%s, %d elements: %w", m.name, length, err)
			}
		}
	}
	size, err := w.BufferDetach()
	return cmp.Or(err, equal("buffer", size, 1<<20))
}

func blockingModes(w *mpj.World) error {
	return inModes(w, func(m mode, buf []int32, dest int) (func() error, error) {
		return func() error { return nil }, m.send(w.Comm, buf, dest, 3)
	})
}

func startedModes(w *mpj.World) error {
	return inModes(w, func(m mode, buf []int32, dest int) (func() error, error) {
		r, err := m.start(w.Comm, buf, dest, 3)
		return func() error { _, err := r.Wait(); return err }, err
	})
}

func order(w *mpj.World) error {
	const count = 100
	if w.Rank() == 0 {
		for i := range count {
			if err := mpj.Send(w.Comm, []int{i}, 1, 0); err != nil {
				return err
			}
		}
	}
	if w.Rank() != 1 {
		return nil
	}
	for i := range count {
		source, tag := []int{0, mpj.AnySource}[i%2], []int{0, mpj.AnyTag}[i/2%2]
		buf := make([]int, 1)
		if _, err := mpj.Recv(w.Comm, buf, source, tag); err != nil {
			return err
		}
		if err := equal("message", buf[0], i); err != nil {
			return err
		}
	}
	return nil
}

func orderOfLengths(w *mpj.World) error {
	lengths := []int{200000, 1, 9000, 0, 100000, 3}
	var rs []*mpj.Request
	bufs := make([][]int, len(lengths))
	for i, length := range lengths {
		var r *mpj.Request
		var err error
		switch w.Rank() {
		case 0:
			r, err = mpj.Isend(w.Comm, numbers[int](i, length), 1, 0)
		case 1:
			bufs[i] = make([]int, lengths[0])
			r, err = mpj.Irecv(w.Comm, bufs[i], 0, 0)
		}
		if err != nil {
			return err
		}
		rs = append(rs, r)
	}
	statuses, err := mpj.Waitall(rs...)
	for i, s := range statuses {
		if w.Rank() == 1 {
			got := bufs[i][:s.Size/8]
			err = cmp.Or(err, same(fmt.Sprintf("message %d", i), got, numbers[int](i, lengths[i])))
		}
	}
	return err
}

func orderOfTags(w *mpj.World) error {
	const tags = 20
	for i := range tags {
		if w.Rank() == 0 {
			if err := mpj.Send(w.Comm, []int{i}, 1, i); err != nil {
				return err
			}
		}
		if w.Rank() == 1 {
			buf, tag := make([]int, 1), tags-1-i
			s, err := mpj.Recv(w.Comm, buf, 0, tag)
			if err := cmp.Or(err, equal("message", buf[0], tag), equal("tag", s.Tag, tag)); err != nil {
				return err
			}
		}
	}
	return nil
}

// synchronous makes rank 1 receive only after a test has shown that the send is incomplete.
func synchronous(w *mpj.World) error {
	buf := make([]int, 1)
	switch w.Rank() {
	case 0:
		r, err := mpj.Issend(w.Comm, []int{7}, 1, 0)
		if err != nil {
			return err
		}
		_, done, err := r.Test()
		if err := cmp.Or(err, equal("complete before the receive", done, false), mpj.Send(w.Comm, buf, 1, 1)); err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	case 1:
		_, err := mpj.Recv(w.Comm, buf, 0, 1)
		if err != nil {
			return err
		}
		_, err = mpj.Recv(w.Comm, buf, 0, 0)
		return cmp.Or(err, equal("message", buf[0], 7))
	}
	return nil
}

// buffered sends messages far above the eager limit before any rank receives (3.6).
func buffered(w *mpj.World) error {
	const length, count = 20000, 3
	if err := w.BufferAttach(count * (8*length + mpj.BsendOverhead)); err != nil {
		return err
	}
	for i := range count {
		if err := mpj.Bsend(w.Comm, numbers[int](i, length), right(w.Comm), 0); err != nil {
			return err
		}
	}
	for i := range count {
		got := make([]int, length)
		_, err := mpj.Recv(w.Comm, got, left(w.Comm), 0)
		if err := cmp.Or(err, same("message", got, numbers[int](i, length))); err != nil {
			return err
		}
	}
	_, err := w.BufferDetach()
	return err
}

func bufferFull(w *mpj.World) error {
	if err := w.BufferAttach(mpj.BsendOverhead + 8); err != nil {
		return err
	}
	err1 := mpj.Bsend(w.Comm, []int{1, 2}, w.Rank(), 0)
	err2 := w.BufferAttach(1)
	_, err3 := w.BufferDetach()
	_, err4 := w.BufferDetach()
	return cmp.Or(fails("Bsend", err1, mpj.ErrBuffer), fails("second BufferAttach", err2, mpj.ErrBuffer), err3,
		fails("second BufferDetach", err4, mpj.ErrBuffer))
}

// exchange sends from every rank to all ranks before any rank receives (3.5, "safe").
func exchange(w *mpj.World) error {
	const length = 64 << 10
	sent, got := make([]byte, length), make([]byte, length)
	for i := range sent {
		sent[i] = byte(w.Rank())
	}
	for dest := range w.Size() {
		if err := mpj.Send(w.Comm, sent, dest, 0); err != nil {
			return err
		}
	}
	for source := range w.Size() {
		_, err := mpj.Recv(w.Comm, got, source, 0)
		if err := cmp.Or(err, equal("byte", got[length-1], byte(source))); err != nil {
			return err
		}
	}
	return nil
}

func toSelf(w *mpj.World) error {
	for _, length := range lengths {
		got := make([]int32, length)
		r, err := mpj.Isend(w.Comm, numbers[int32](5, length), w.Rank(), 0)
		if err != nil {
			return err
		}
		s, err := mpj.Recv(w.Comm, got, w.Rank(), mpj.AnyTag)
		_, waited := r.Wait()
		err = cmp.Or(err, waited, equal("source", s.Source, w.Rank()), same("message", got, numbers[int32](5, length)))
		if err != nil {
			return err
		}
	}
	return nil
}

func sendrecv(w *mpj.World) error {
	for _, length := range lengths {
		got := make([]float64, length)
		s, err := mpj.Sendrecv(w.Comm, numbers[float64](w.Rank(), length), right(w.Comm), 1, got, left(w.Comm), 1)
		err = cmp.Or(err, equal("source", s.Source, left(w.Comm)), same("message", got, numbers[float64](left(w.Comm), length)))
		if err != nil {
			return err
		}
	}
	return nil
}

func sendrecvReplace(w *mpj.World) error {
	for _, length := range lengths {
		buf := numbers[int64](w.Rank(), length)
		_, err := mpj.SendrecvReplace(w.Comm, buf, right(w.Comm), 1, left(w.Comm), 1)
		if err := cmp.Or(err, same("message", buf, numbers[int64](left(w.Comm), length))); err != nil {
			return err
		}
	}
	return nil
}

// nullProcess tests section 3.10.
func nullProcess(w *mpj.World) error {
	nothing := mpj.Status{Source: mpj.ProcNull, Tag: mpj.AnyTag}
	buf := []int{1, 2}
	s1, err1 := mpj.Recv(w.Comm, buf, mpj.ProcNull, 5)
	s2, err2 := mpj.Probe(w.Comm, mpj.ProcNull, 5)
	s3, err3 := mpj.Sendrecv(w.Comm, buf, mpj.ProcNull, 0, buf, mpj.ProcNull, 0)
	r, err4 := mpj.Irecv(w.Comm, buf, mpj.ProcNull, 0)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return err
	}
	s4, err := r.Wait()
	return cmp.Or(err, same("statuses", []mpj.Status{s1, s2, s3, s4}, []mpj.Status{nothing, nothing, nothing, nothing}),
		mpj.Ssend(w.Comm, buf, mpj.ProcNull, 0), same("buffer", buf, []int{1, 2}))
}

func everyElement(w *mpj.World) error {
	return cmp.Or(
		element[int](w.Comm, -7), element[int8](w.Comm, -8), element[int16](w.Comm, -300), element[int32](w.Comm, -1<<30),
		element[int64](w.Comm, -1<<60), element[uint](w.Comm, math.MaxUint-7), element[uint8](w.Comm, 200), element[uint16](w.Comm, 60000),
		element[uint32](w.Comm, 1<<31), element[uint64](w.Comm, 1<<63), element[float32](w.Comm, 0.1), element(w.Comm, 0.1),
		element[complex64](w.Comm, 0.1+2i), element(w.Comm, 0.1-2i),
		element(w.Comm, mpj.Loc[float64]{Value: 0.5, Index: 3}), element(w.Comm, mpj.Loc[int16]{Value: -5, Index: 4}),
	)
}

func element[T mpj.Element](c *mpj.Comm, v T) error {
	got := make([]T, 3)
	s, err := mpj.Sendrecv(c, []T{v, v}, right(c), 0, got, left(c), 0)
	return cmp.Or(err, same("elements", got[:2], []T{v, v}), equal("count", mpj.Count[T](s), 2))
}

func values(w *mpj.World) error {
	type tree struct {
		Name string
		Kids []tree
		Tags map[string]any // replicas iterate over it in different orders
	}
	v := tree{Tags: map[string]any{"a": 1, "b": "two", "c": 3.5, "d": []byte("four"), "e": uint8(5), "f": nil}, Name: fmt.Sprint("root ", w.Rank()), Kids: []tree{{Name: "a"}, {Name: "b", Kids: []tree{{Name: "c"}}}}}
	if err := mpj.SendValue(w.Comm, v, right(w.Comm), 0); err != nil {
		return err
	}
	got, s, err := mpj.RecvValue[tree](w.Comm, left(w.Comm), 0)
	if err != nil {
		return err
	}
	all, err := mpj.BcastValue(w.Comm, v.Name, w.Size()-1)
	return cmp.Or(err, equal("name", got.Name, fmt.Sprint("root ", left(w.Comm))), equal("leaf", got.Kids[1].Kids[0].Name, "c"),
		equal("tags", fmt.Sprint(got.Tags), fmt.Sprint(v.Tags)),
		equal("source", s.Source, left(w.Comm)), equal("broadcast", all, fmt.Sprint("root ", w.Size()-1)))
}
