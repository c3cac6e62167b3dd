package mpj

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

func TestAttributesFollowTheirFunctions(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		var deleted []string
		refuse := false
		kept := KeyvalCreate(KeepAttribute[int], nil)
		counted := KeyvalCreate(
			func(_ *Comm, s string) (string, bool) { return s + "+", s != "stays" },
			func(_ *Comm, s string) error {
				if refuse {
					return fmt.Errorf("%s is in use", s)
				}
				deleted = append(deleted, s)
				return nil
			})
		private := KeyvalCreate[string](nil, nil)
		err := first(AttrPut(w.Comm, kept, 7), AttrPut(w.Comm, counted, "a"), AttrPut(w.Comm, counted, "b"), AttrPut(w.Comm, private, "x"))
		if err != nil {
			return err
		}
		d, err := w.Dup()
		if err != nil {
			return err
		}
		n, ok1 := AttrGet(d, kept)
		s, ok2 := AttrGet(d, counted)
		_, ok3 := AttrGet(d, private)
		original, _ := AttrGet(w.Comm, counted)
		err = first(want("in the duplicate", []any{n, ok1, s, ok2, ok3, original}, []any{7, true, "b+", true, false, "b"}),
			want("replaced", deleted, []string{"a"}))
		if err != nil {
			return err
		}
		refuse = true
		err1, err2, err3 := d.Free(), AttrDelete(d, counted), AttrPut(d, counted, "c")
		refuse = false
		return first(isErr(err1), isErr(err2), isErr(err3), AttrPut(d, counted, "stays"), d.Free(), Barrier(w.Comm),
			want("deleted", deleted, []string{"a", "b+", "stays"}),
			isClass(AttrPut[int](w.Comm, nil, 1), ErrKeyval), isClass(AttrDelete[int](w.Comm, nil), ErrKeyval),
			AttrDelete(w.Comm, kept), AttrDelete(w.Comm, kept), isClass(AttrPut(d, kept, 1), ErrComm))
	})
	if err != nil {
		t.Error(err)
	}
}

// TestErrhandlerIsCalledOncePerError checks that the handler gets each error once, with rank and
// arguments. The call returns the handler's result, and new communicators inherit the handler.
func TestErrhandlerIsCalledOncePerError(t *testing.T) {
	mine := errors.New("mine")
	err := RunLocal(context.Background(), 2, func(w *World) error {
		var seen []string
		w.SetErrhandler(func(c *Comm, err *Error) error {
			seen = append(seen, err.Error())
			return mine
		})
		d, err := w.Dup()
		if err != nil {
			return err
		}
		_, dims := d.CartCreate([]int{3}, []bool{true}, false)
		_, truncated := Recv(d, make([]int, 1), ProcNull, 0)
		if err := first(truncated, Send(d, []int{1, 2}, d.Rank(), 3)); err != nil {
			return err
		}
		_, truncated = Recv(d, make([]int, 1), AnySource, 3)
		for _, err := range []error{Send(d, []int{1}, 5, 0), Bcast(d, []int{1}, -1), dims, truncated} {
			if !errors.Is(err, mine) {
				return fmt.Errorf("the handler's error is not returned: %w", err)
			}
		}
		at := fmt.Sprintf(" at rank %d: ", w.Rank())
		err = want("errors", seen, []string{
			"mpj.CartCreate" + at + "invalid dimensions: grid [3] for 2 ranks",
			"mpj.Recv" + at + fmt.Sprintf("message longer than the receive buffer: message of 16 bytes from rank %d with tag 3, buffer of 8 bytes", w.Rank()),
			"mpj.Send" + at + "invalid rank: dest 5, ranks are 0..1",
			"mpj.Bcast" + at + "invalid root: root -1, ranks are 0..1",
		})
		w.SetErrhandler(ErrorsReturn)
		return first(err, isClass(Send(w.Comm, []int{1}, 5, 0), ErrRank))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestErrorsAreFatalEndsTheJob(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		w.SetErrhandler(ErrorsAreFatal)
		if w.Rank() == 1 {
			Send(w.Comm, []int{1}, 9, 0)
			t.Error("Send returned")
		}
		w.SetErrhandler(nil)
		return Barrier(w.Comm)
	})
	if err == nil || err.Error() != "rank 1 aborted with status 1: mpj.Send at rank 1: invalid rank: dest 9, ranks are 0..1" {
		t.Errorf("RunLocal returned %v, want the error of rank 1", err)
	}
}

// TestAttributesAreSetByGoroutines checks that several goroutines may set one attribute, and that
// one of the values remains.
func TestAttributesAreSetByGoroutines(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(w *World) error {
		k := KeyvalCreate(nil, func(*Comm, int) error { runtime.Gosched(); return nil })
		var setting sync.WaitGroup
		for i := range 4 {
			setting.Go(func() {
				for range 1000 {
					if err := AttrPut(w.Comm, k, i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		setting.Wait()
		_, before := AttrGet(w.Comm, k)
		err := AttrDelete(w.Comm, k)
		_, after := AttrGet(w.Comm, k)
		return first(err, want("set before and after a deletion", []bool{before, after}, []bool{true, false}))
	})
	if err != nil {
		t.Error(err)
	}
}
