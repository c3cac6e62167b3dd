package mpitest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Point-to-point communication: completion of requests (MPI 4.0, 3.7).
var requests = []Test{
	{"waitall completes all requests", 1, true, waitall},
	{"waitany completes each request once", 1, true, waitany},
	{"waitsome completes each request once", 1, true, waitsome},
	{"testany, testsome and testall report completion", 1, true, tests},
	{"test does not wait", 2, true, test},
	{"requests that are not active are complete", 1, true, inactive},
	{"a completed request has an empty status in later waits", 1, true, waitedFor},
	{"get-status does not release the request", 1, true, getStatus},
	{"waitall returns the error of a failed request", 1, true, waitError},
	{"waitall tells which request failed and how", 1, true, waitallErrors},
	{"waitsome tells which request failed and how", 1, true, waitsomeErrors},
	{"testall and testsome tell which request failed and how", 1, true, testErrors},
	{"requests that are not active have empty statuses", 1, true, emptyStatuses},
	{"a wait that was given up can be repeated", 2, true, waitContext},
}

// posted starts to receive count messages from the left neighbour, and then to send count messages
// to the right neighbour in the opposite order.
func posted(w *mpj.World, count int) (rs []*mpj.Request, bufs [][]int, err error) {
	for i := range count {
		buf := make([]int, 1)
		r, err := mpj.Irecv(w.Comm, buf, left(w.Comm), i)
		if err != nil {
			return nil, nil, err
		}
		rs, bufs = append(rs, r), append(bufs, buf)
	}
	for i := range count {
		tag := count - 1 - i
		r, err := mpj.Isend(w.Comm, []int{100 + tag}, right(w.Comm), tag)
		if err != nil {
			return nil, nil, err
		}
		rs = append(rs, r)
	}
	return rs, bufs, nil
}

const several = 5 // number of messages

// whole returns an error unless all messages of posted have arrived.
func whole(bufs [][]int) error {
	for i, buf := range bufs {
		if buf[0] != 100+i {
			return fmt.Errorf("message %d: got %d, want %d", i, buf[0], 100+i)
		}
	}
	return nil
}

func waitedFor(w *mpj.World) error {
	rs, bufs, err := posted(w, 1)
	if err != nil {
		return err
	}
	_, err = mpj.Waitall(rs...)
	return cmp.Or(err, whole(bufs), noStatus(rs[0]), noStatus(rs[1]))
}

func waitall(w *mpj.World) error {
	rs, bufs, err := posted(w, several)
	if err != nil {
		return err
	}
	statuses, err := mpj.Waitall(rs...)
	if err := cmp.Or(err, whole(bufs)); err != nil {
		return err
	}
	for i := range several {
		want := mpj.Status{Source: left(w.Comm), Tag: i, Size: 8}
		if err := cmp.Or(equal("status", statuses[i], want), equal("status of a send", statuses[several+i], mpj.Status{Source: mpj.AnySource, Tag: mpj.AnyTag})); err != nil {
			return err
		}
	}
	return nil
}

func waitany(w *mpj.World) error {
	rs, bufs, err := posted(w, several)
	if err != nil {
		return err
	}
	seen := make([]bool, len(rs))
	for range rs {
		i, s, err := mpj.Waitany(rs...)
		if err := cmp.Or(err, equal("repeated", seen[i], false)); err != nil {
			return err
		}
		if seen[i] = true; i < several {
			if err := equal("tag", s.Tag, i); err != nil {
				return err
			}
		}
	}
	i, _, err := mpj.Waitany(rs...)
	return cmp.Or(err, equal("index", i, mpj.Undefined), whole(bufs))
}

func waitsome(w *mpj.World) error {
	rs, bufs, err := posted(w, several)
	if err != nil {
		return err
	}
	seen := make([]bool, len(rs))
	for range rs {
		indices, statuses, err := mpj.Waitsome(rs...)
		if err := cmp.Or(err, equal("statuses", len(statuses), len(indices))); err != nil {
			return err
		}
		if indices == nil {
			break
		}
		for _, i := range indices {
			if err := equal("repeated", seen[i], false); err != nil {
				return err
			}
			seen[i] = true
		}
	}
	return cmp.Or(same("seen", seen, []bool{true, true, true, true, true, true, true, true, true, true}), whole(bufs))
}

func tests(w *mpj.World) error {
	rs, bufs, err := posted(w, several)
	if err != nil {
		return err
	}
	reported := 0
	for reported == 0 {
		i, _, done, err := mpj.Testany(rs...)
		if err != nil {
			return err
		}
		if done && i != mpj.Undefined {
			reported++
		}
	}
	for reported < 2 {
		indices, _, err := mpj.Testsome(rs...)
		if err != nil {
			return err
		}
		reported += len(indices)
	}
	for done := false; !done; {
		var err error
		if _, done, err = mpj.Testall(rs...); err != nil {
			return err
		}
	}
	return whole(bufs)
}

func test(w *mpj.World) error {
	if w.Rank() > 1 {
		return nil
	}
	buf, other := make([]int, 1), 1-w.Rank()
	r, err := mpj.Irecv(w.Comm, buf, other, 9)
	if err != nil {
		return err
	}
	_, done, err := r.Test() // the other rank sends only after this call
	if err := cmp.Or(err, equal("complete", done, false)); err != nil {
		return err
	}
	if _, err := mpj.Sendrecv(w.Comm, []byte{1}, other, 1, make([]byte, 1), other, 1); err != nil {
		return err
	}
	if err := mpj.Send(w.Comm, []int{6}, other, 9); err != nil {
		return err
	}
	for done = false; !done; {
		if _, done, err = r.Test(); err != nil {
			return err
		}
	}
	return equal("message", buf[0], 6)
}

func inactive(*mpj.World) error {
	var r *mpj.Request
	_, err1 := r.Wait()
	_, done1, err2 := r.Test()
	_, done2, err3 := mpj.Testall(r, r)
	i, _, done3, err4 := mpj.Testany(r)
	indices, _, err5 := mpj.Waitsome(r)
	return cmp.Or(err1, err2, err3, err4, err5, same("complete", []bool{done1, done2, done3}, []bool{true, true, true}),
		equal("index", i, mpj.Undefined), equal("indices", len(indices), 0))
}

func getStatus(w *mpj.World) error {
	rs, bufs, err := posted(w, 1)
	if err != nil {
		return err
	}
	for done := false; !done; {
		if _, done, err = rs[0].GetStatus(); err != nil {
			return err
		}
	}
	s, again, err := rs[0].GetStatus()
	if err := cmp.Or(err, equal("complete", again, true), equal("size", s.Size, 8)); err != nil {
		return err
	}
	i, _, err := mpj.Waitany(rs[0]) // the request is still active
	_, waited := rs[1].Wait()
	return cmp.Or(err, waited, equal("index", i, 0), whole(bufs))
}

func waitError(w *mpj.World) error {
	short, long := make([]int, 1), make([]int, 2)
	r1, err1 := mpj.Irecv(w.Comm, short, left(w.Comm), 1)
	r2, err2 := mpj.Irecv(w.Comm, long, left(w.Comm), 2)
	err := cmp.Or(err1, err2, mpj.Send(w.Comm, []int{1, 2}, right(w.Comm), 1), mpj.Send(w.Comm, []int{3, 4}, right(w.Comm), 2))
	if err != nil {
		return err
	}
	statuses, err := mpj.Waitall(r1, r2)
	return cmp.Or(fails("Waitall", err, mpj.ErrTruncate), same("the other message", long, []int{3, 4}), equal("its size", statuses[1].Size, 16))
}

// failing starts two receives whose messages are too long, at the indices 0 and 3, and one of 8 bytes, at
// index 2. The request at index 1 is nil.
func failing(w *mpj.World) ([]*mpj.Request, error) {
	rs := make([]*mpj.Request, 4)
	for i := range rs {
		if i == 1 {
			continue
		}
		room := make([]byte, 8)
		if i != 2 {
			room = room[:i]
		}
		r, err := mpj.Irecv(w.Comm, room, left(w.Comm), i)
		if err := cmp.Or(err, mpj.Send(w.Comm, []int{i}, right(w.Comm), i)); err != nil {
			return nil, err
		}
		rs[i] = r
	}
	return rs, nil
}

// whichFailed checks that err has an error for each status, and that those of failing at the given
// indices are right.
func whichFailed(what string, err error, indices []int) error {
	failed, ok := errors.AsType[*mpj.RequestsError](err)
	if err := cmp.Or(equal(what+": requests failed", ok, true), fails(what, err, mpj.ErrInStatus), fails(what, err, mpj.ErrTruncate)); err != nil {
		return err
	}
	if err := equal(what+": errors", len(failed.Errs), len(indices)); err != nil {
		return err
	}
	for at, i := range indices {
		if i == 0 || i == 3 {
			err = fails(what, failed.Errs[at], mpj.ErrTruncate)
		} else {
			err = equal(fmt.Sprintf("%s: error of request %d", what, i), failed.Errs[at], nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func waitallErrors(w *mpj.World) error {
	rs, err := failing(w)
	if err != nil {
		return err
	}
	statuses, err := mpj.Waitall(rs...)
	_, again := mpj.Waitall(rs...)
	return cmp.Or(whichFailed("Waitall", err, []int{0, 1, 2, 3}), again, equal("status of the nil request", statuses[1], noMessage),
		equal("status", statuses[2], mpj.Status{Source: left(w.Comm), Tag: 2, Size: 8}))
}

func waitsomeErrors(w *mpj.World) error {
	rs, err := failing(w)
	if err != nil {
		return err
	}
	return collect(rs, func() ([]int, []mpj.Status, error) { return mpj.Waitsome(rs...) })
}

// collect calls some until it has returned the three active requests of failing.
func collect(rs []*mpj.Request, some func() ([]int, []mpj.Status, error)) error {
	for open := 3; open > 0; {
		indices, statuses, err := some()
		open -= len(indices)
		if err := equal("statuses", len(statuses), len(indices)); err != nil {
			return err
		}
		failed := slices.Contains(indices, 0) || slices.Contains(indices, 3)
		if err := equal("failed", err != nil, failed); err != nil {
			return err
		}
		if failed {
			if err := whichFailed("several", err, indices); err != nil {
				return err
			}
		}
	}
	_, err := mpj.Waitall(rs...)
	return err
}

func testErrors(w *mpj.World) error {
	rs, err := failing(w)
	if err != nil {
		return err
	}
	if err := collect(rs, func() ([]int, []mpj.Status, error) { return mpj.Testsome(rs...) }); err != nil {
		return err
	}
	if rs, err = failing(w); err != nil {
		return err
	}
	for {
		statuses, done, err := mpj.Testall(rs...)
		if done {
			return cmp.Or(whichFailed("Testall", err, []int{0, 1, 2, 3}), equal("status of the nil request", statuses[1], noMessage))
		}
		if err != nil {
			return err
		}
	}
}

// noMessage is the status of a request that received no message.
var noMessage = mpj.Status{Source: mpj.AnySource, Tag: mpj.AnyTag}

func emptyStatuses(w *mpj.World) error {
	persistent, err := mpj.RecvInit(w.Comm, make([]int, 1), left(w.Comm), 0)
	if err != nil {
		return err
	}
	rs := []*mpj.Request{nil, persistent}
	empty := []mpj.Status{noMessage, noMessage}
	all, err1 := mpj.Waitall(rs...)
	tested, done, err2 := mpj.Testall(rs...)
	_, any, err3 := mpj.Waitany(rs...)
	i, one, found, err4 := mpj.Testany(rs...)
	status, complete, err5 := persistent.GetStatus()
	some, _, err6 := mpj.Testsome(rs...)
	return cmp.Or(err1, err2, err3, err4, err5, err6, same("Waitall", all, empty), same("Testall", tested, empty),
		same("complete", []bool{done, found, complete}, []bool{true, true, true}), equal("Testany", i, mpj.Undefined),
		same("one status", []mpj.Status{any, one, status}, []mpj.Status{noMessage, noMessage, noMessage}), equal("Testsome", len(some), 0))
}

// waitContext waits with a context that has ended, and then waits again.
func waitContext(w *mpj.World) error {
	if w.Rank() > 1 {
		return nil
	}
	buf, other := make([]int, 1), 1-w.Rank()
	r, err := mpj.Irecv(w.Comm, buf, other, 9)
	if err != nil {
		return err
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	_, err1 := r.WaitContext(ctx)
	if err := cmp.Or(fails("WaitContext", err1, mpj.ErrContext), equal("its cause", errors.Is(err1, cause), true)); err != nil {
		return err
	}
	if _, err := mpj.Sendrecv(w.Comm, []byte{1}, other, 1, make([]byte, 1), other, 1); err != nil {
		return err
	}
	if err := mpj.Send(w.Comm, []int{6}, other, 9); err != nil {
		return err
	}
	_, err = r.WaitContext(context.Background())
	return cmp.Or(err, equal("message", buf[0], 6))
}
