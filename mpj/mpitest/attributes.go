package mpitest

import (
	"cmp"
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Attributes of communicators (MPI 4.0, 7.7).
var attributes = []Test{
	{"attributes are set, replaced and deleted", 1, true, attribute},
	{"dup copies attributes according to their functions", 1, true, attributeCopies},
	{"free deletes attributes, the last one first", 1, true, attributeDeletes},
	{"an error of a delete function keeps the attribute", 1, true, attributeKept},
}

func attribute(w *mpj.World) error {
	k, other := mpj.KeyvalCreate[int](nil, nil), mpj.KeyvalCreate[int](nil, nil)
	err := cmp.Or(mpj.AttrPut(w.Comm, k, 1), mpj.AttrPut(w.Comm, k, 2))
	v, ok := mpj.AttrGet(w.Comm, k)
	_, unset := mpj.AttrGet(w.Comm, other)
	err = cmp.Or(err, mpj.AttrDelete(w.Comm, k))
	_, deleted := mpj.AttrGet(w.Comm, k)
	return cmp.Or(err, equal("value", v, 2), same("set", []bool{ok, unset, deleted}, []bool{true, false, false}),
		fails("no key", mpj.AttrPut[int](w.Comm, nil, 1), mpj.ErrKeyval))
}

func attributeCopies(w *mpj.World) error {
	kept := mpj.KeyvalCreate(mpj.KeepAttribute[string], nil)
	counted := mpj.KeyvalCreate(func(_ *mpj.Comm, v int) (int, bool) { return v + 1, true }, nil)
	refused := mpj.KeyvalCreate(func(_ *mpj.Comm, v int) (int, bool) { return v, false }, nil)
	c, err := w.Dup()
	if err := cmp.Or(err, mpj.AttrPut(c, kept, "x"), mpj.AttrPut(c, counted, 1), mpj.AttrPut(c, refused, 1)); err != nil {
		return err
	}
	d, err := c.Dup()
	if err != nil {
		return err
	}
	s, _ := mpj.AttrGet(d, kept)
	n, _ := mpj.AttrGet(d, counted)
	_, ok := mpj.AttrGet(d, refused)
	return cmp.Or(equal("kept", s, "x"), equal("counted", n, 2), equal("refused", ok, false), d.Free(), c.Free())
}

func attributeDeletes(w *mpj.World) error {
	var order []int
	note := func(_ *mpj.Comm, v int) error { order = append(order, v); return nil }
	c, err := w.Dup()
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := mpj.AttrPut(c, mpj.KeyvalCreate(nil, note), i); err != nil {
			return err
		}
	}
	return cmp.Or(c.Free(), same("deleted", order, []int{2, 1, 0}))
}

func attributeKept(w *mpj.World) error {
	busy, stop := errors.New("in use"), true
	k := mpj.KeyvalCreate(nil, func(*mpj.Comm, int) error {
		if stop {
			return busy
		}
		return nil
	})
	c, err := w.Dup()
	if err := cmp.Or(err, mpj.AttrPut(c, k, 1)); err != nil {
		return err
	}
	failed := c.Free()
	v, ok := mpj.AttrGet(c, k)
	stop = false
	return cmp.Or(equal("cause", errors.Is(failed, busy), true), equal("kept", ok && v == 1, true), mpj.Barrier(c), c.Free())
}
