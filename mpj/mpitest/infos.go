package mpitest

import (
	"cmp"
	"strings"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Info objects (MPI 4.0, 10), also those of communicators (7.4.4).
var infos = []Test{
	{"info objects keep keys in order", 1, true, infoKeys},
	{"info objects refuse invalid keys and values", 1, true, infoErrors},
	{"a duplicate of an info object is independent", 1, true, infoDup},
	{"communicators keep their hints", 1, true, infoOfComm},
	{"a duplicate has the hints that it is given", 1, true, dupWithInfo},
}

// infoWith returns an Info of these keys and values, in turn.
func infoWith(hints ...string) (*mpj.Info, error) {
	x := mpj.InfoCreate()
	for i := 0; i < len(hints); i += 2 {
		if err := x.Set(hints[i], hints[i+1]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// contains checks that x has exactly these keys and values, in turn.
func contains(what string, x *mpj.Info, hints ...string) error {
	var got []string
	for i := range x.Nkeys() {
		key, err := x.Nthkey(i)
		if err != nil {
			return err
		}
		value, ok := x.Get(key)
		if err := equal(what+": set", ok, true); err != nil {
			return err
		}
		got = append(got, key, value)
	}
	return same(what, got, hints)
}

func infoKeys(*mpj.World) error {
	x, err := infoWith("b", "1", "a", "2", "b", "3")
	_, unset := x.Get("c")
	return cmp.Or(err, contains("hints", x, "b", "3", "a", "2"), equal("unset", unset, false), x.Delete("b"), contains("hints left", x, "a", "2"),
		x.Set("b", ""), contains("hints at last", x, "a", "2", "b", ""))
}

func infoErrors(*mpj.World) error {
	x := mpj.InfoCreate()
	var null *mpj.Info
	_, outside := x.Nthkey(0)
	err := cmp.Or(x.Set(strings.Repeat("k", 255), strings.Repeat("v", 1023)), equal("keys", x.Nkeys(), 1))
	return cmp.Or(err, fails("no key", x.Set("", "v"), mpj.ErrInfoKey), fails("a long key", x.Set(strings.Repeat("k", 256), "v"), mpj.ErrInfoKey),
		fails("a long value", x.Set("k", strings.Repeat("v", 1024)), mpj.ErrInfoValue), fails("Delete of an unset key", x.Delete("k"), mpj.ErrInfoNoKey),
		fails("Nthkey", outside, mpj.ErrArg), fails("Set of the null object", null.Set("k", "v"), mpj.ErrInfo),
		fails("Delete of the null object", null.Delete("k"), mpj.ErrInfo), equal("keys of the null object", null.Nkeys(), 0))
}

func infoDup(*mpj.World) error {
	x, err := infoWith("a", "1", "b", "2")
	if err != nil {
		return err
	}
	y := x.Dup()
	return cmp.Or(y.Set("a", "3"), y.Delete("b"), contains("original", x, "a", "1", "b", "2"), contains("copy", y, "a", "3"))
}

func infoOfComm(w *mpj.World) error {
	c, err := w.Dup()
	if err != nil {
		return err
	}
	first, err1 := infoWith("mpi_assert_no_any_tag", "true", "library", "1")
	more, err2 := infoWith("library", "2", "other", "3")
	err = cmp.Or(err1, err2, c.SetInfo(first), c.SetInfo(more), first.Set("library", "9"))
	if err != nil {
		return err
	}
	got, err := c.Info()
	if err := cmp.Or(err, contains("hints", got, "mpi_assert_no_any_tag", "true", "library", "2", "other", "3"), got.Delete("other")); err != nil {
		return err
	}
	again, err := c.Info()
	return cmp.Or(err, equal("keys", again.Nkeys(), 3), fails("SetInfo of the null object", c.SetInfo(nil), mpj.ErrInfo),
		works(w, c, numbers[int](0, w.Size())), c.Free())
}

func dupWithInfo(w *mpj.World) error {
	x, err := infoWith("library", "1")
	if err != nil {
		return err
	}
	c, err := w.DupWithInfo(x)
	if err != nil {
		return err
	}
	plain, err1 := c.Dup()
	d, r, err2 := c.IdupWithInfo(x)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	a, err1 := c.Info()
	b, err2 := plain.Info()
	e, err3 := d.Info()
	return cmp.Or(err1, err2, err3, contains("DupWithInfo", a, "library", "1"), contains("Dup", b), contains("IdupWithInfo", e, "library", "1"),
		works(w, d, numbers[int](0, w.Size())), d.Free(), plain.Free(), c.Free())
}
