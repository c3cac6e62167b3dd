package mpitest

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Point-to-point communication: receives, wildcards and truncation (MPI 4.0,
// 3.2.4 and 3.5).
var receives = []Test{
	{"wildcards receive one message from every rank", 1, true, wildcards},
	{"wildcards keep the order of each source", 2, true, wildcardOrder},
	{"no source starves", 2, true, fairness},
	{"a tag wildcard works with a named source", 2, true, anyTag},
	{"posted receives are matched in their order", 2, true, postedOrder},
	{"a shorter message fills the beginning", 1, true, partial},
	{"a longer message is an error and is consumed", 2, true, truncation},
}

func wildcards(w *mpj.World) error {
	if err := mpj.Send(w.Comm, []int{w.Rank()}, 0, 10+w.Rank()); err != nil || w.Rank() > 0 {
		return err
	}
	seen := make([]bool, w.Size())
	for range w.Size() {
		buf := make([]int, 1)
		s, err := mpj.Recv(w.Comm, buf, mpj.AnySource, mpj.AnyTag)
		if err != nil {
			return err
		}
		if err := cmp.Or(equal("source", s.Source, buf[0]), equal("tag", s.Tag, 10+buf[0]), equal("seen", seen[s.Source], false)); err != nil {
			return err
		}
		seen[s.Source] = true
	}
	return nil
}

func wildcardOrder(w *mpj.World) error {
	const count = 20
	if w.Rank() > 0 {
		for i := range count {
			if err := mpj.Send(w.Comm, numbers[int](i, 1+i%2*9000), 0, i%3); err != nil {
				return err
			}
		}
		return nil
	}
	next := make([]int, w.Size())
	buf := make([]int, 9001)
	for range count * (w.Size() - 1) {
		s, err := mpj.Recv(w.Comm, buf, mpj.AnySource, mpj.AnyTag)
		if err := cmp.Or(err, equal("message", buf[0], next[s.Source])); err != nil {
			return fmt.Errorf("from rank %d: %w", s.Source, err)
		}
		next[s.Source]++
	}
	return nil
}

// fairness ends only when rank 0 has received enough messages from each source, while all other
// ranks keep sending.
func fairness(w *mpj.World) error {
	const often = 10
	more := make([]int, 1)
	if w.Rank() > 0 {
		for more[0] = 1; more[0] == 1; {
			if err := mpj.Send(w.Comm, more, 0, 0); err != nil {
				return err
			}
			if _, err := mpj.Recv(w.Comm, more, 0, 0); err != nil {
				return err
			}
		}
		return nil
	}
	heard := make([]int, w.Size())
	for stopped := 1; stopped < w.Size(); {
		s, err := mpj.Recv(w.Comm, more, mpj.AnySource, 0)
		if err != nil {
			return err
		}
		heard[s.Source]++
		if least(heard[1:]) >= often {
			more[0] = 0
			stopped++
		}
		if err := mpj.Send(w.Comm, more, s.Source, 0); err != nil {
			return err
		}
	}
	return nil
}

func least(s []int) int {
	l := s[0]
	for _, v := range s {
		l = min(l, v)
	}
	return l
}

func anyTag(w *mpj.World) error {
	if w.Rank() > 1 {
		return nil
	}
	other := 1 - w.Rank()
	for _, tag := range []int{5, mpj.MaxTag, 0} {
		if err := mpj.Send(w.Comm, []int{tag}, other, tag); err != nil {
			return err
		}
	}
	for _, tag := range []int{5, mpj.MaxTag, 0} {
		buf := make([]int, 1)
		s, err := mpj.Recv(w.Comm, buf, other, mpj.AnyTag)
		if err := cmp.Or(err, equal("tag", s.Tag, tag), equal("message", buf[0], tag)); err != nil {
			return err
		}
	}
	return nil
}

// postedOrder posts receives with and without wildcards for messages that each receive could take.
func postedOrder(w *mpj.World) error {
	if w.Rank() == 1 {
		if err := mpj.Barrier(w.Comm); err != nil {
			return err
		}
		for i := range 4 {
			if err := mpj.Send(w.Comm, []int{i}, 0, 1); err != nil {
				return err
			}
		}
		return nil
	}
	var rs []*mpj.Request
	bufs := [4][1]int{}
	if w.Rank() == 0 {
		for i := range bufs {
			source, tag := []int{1, mpj.AnySource, 1, mpj.AnySource}[i], []int{1, 1, mpj.AnyTag, mpj.AnyTag}[i]
			r, err := mpj.Irecv(w.Comm, bufs[i][:], source, tag)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
	}
	if err := mpj.Barrier(w.Comm); err != nil || w.Rank() > 0 {
		return err
	}
	_, err := mpj.Waitall(rs...)
	return cmp.Or(err, equal("messages by receive", bufs, [4][1]int{{0}, {1}, {2}, {3}}))
}

func partial(w *mpj.World) error {
	buf := []int32{9, 9, 9, 9}
	s, err := mpj.Sendrecv(w.Comm, []int32{1, 2, 3}, right(w.Comm), 0, buf, left(w.Comm), 0)
	return cmp.Or(err, same("buffer", buf, []int32{1, 2, 3, 9}), equal("count", mpj.Count[int32](s), 3),
		equal("count of bytes", mpj.Count[byte](s), 12), equal("count of longer elements", mpj.Count[int64](s), mpj.Undefined))
}

func truncation(w *mpj.World) error {
	for _, length := range []int{3, 50000} { // eager, and by rendezvous
		switch w.Rank() {
		case 0:
			r, err := mpj.Isend(w.Comm, numbers[int](0, length), 1, 4)
			if err != nil {
				return err
			}
			_, err = r.Wait()
			if err := cmp.Or(err, mpj.Send(w.Comm, []int{8}, 1, 4)); err != nil {
				return err
			}
		case 1:
			buf := make([]int, 2)
			s, err := mpj.Recv(w.Comm, buf, 0, 4)
			if err := cmp.Or(fails("Recv", err, mpj.ErrTruncate), equal("size", s.Size, 8*length)); err != nil {
				return err
			}
			_, err = mpj.Recv(w.Comm, buf, 0, 4)
			if err := cmp.Or(err, equal("next message", buf[0], 8)); err != nil {
				return err
			}
		}
	}
	return nil
}
