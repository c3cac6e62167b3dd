package mpitest

import (
	"cmp"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Intercommunicators (MPI 4.0, 7.6).
var intercomms = []Test{
	{"an intercommunicator joins two groups", 2, true, across},
	{"an intercommunicator is duplicated", 2, true, acrossDup},
	{"merge orders the groups", 2, true, merge},
	{"split of an intercommunicator joins ranks of both groups", 2, true, acrossSplit},
	{"split of an intercommunicator needs a color in both groups", 2, true, acrossSplitOneSided},
	{"create of an intercommunicator takes a part of each group", 2, true, acrossCreate},
	{"wrong arguments fail at all ranks of an intercommunicator", 2, true, acrossWrong},
	{"idup and create-group make an intercommunicator", 2, true, acrossFrom},
	{"collectives of an intercommunicator are errors", 2, true, acrossCollective},
}

// halves splits w into its even and odd ranks, and connects the two halves with an
// intercommunicator. The leaders are the last rank of each half.
func halves(w *mpj.World) (half, inter *mpj.Comm, remote []int, err error) {
	half, err = w.Split(w.Rank()%2, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := 1 - w.Rank()%2; i < w.Size(); i += 2 {
		remote = append(remote, i)
	}
	inter, err = half.IntercommCreate(half.Size()-1, w.Comm, remote[len(remote)-1], 5)
	return half, inter, remote, err
}

// talks checks x with a message from every rank to every remote rank.
func talks(x *mpj.Comm) error {
	for dest := range x.RemoteSize() {
		if err := mpj.Send(x, []int{100*x.Rank() + dest}, dest, 3); err != nil {
			return err
		}
	}
	heard := make([]bool, x.RemoteSize())
	for range heard {
		buf := make([]int, 1)
		s, err := mpj.Recv(x, buf, mpj.AnySource, 3)
		if err := cmp.Or(err, equal("message", buf[0], 100*s.Source+x.Rank()), equal("heard", heard[s.Source], false)); err != nil {
			return err
		}
		heard[s.Source] = true
	}
	return nil
}

func across(w *mpj.World) error {
	half, x, remote, err := halves(w)
	if err != nil {
		return err
	}
	return cmp.Or(equal("inter", x.TestInter(), true), equal("inter", half.TestInter(), false), equal("size", x.Size(), half.Size()),
		equal("remote size", x.RemoteSize(), len(remote)), same("remote group", ranksOf(w, x.RemoteGroup()), remote),
		equal("group", x.Group().Compare(half.Group()), mpj.Identical), talks(x), x.Free(), half.Free())
}

func acrossDup(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	y, err := x.Dup()
	if err != nil {
		return err
	}
	return cmp.Or(equal("compare", x.Compare(y), mpj.Congruent), x.Free(), talks(y), y.Free(), half.Free())
}

func merge(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	both, err := x.Merge(w.Rank()%2 == 0) // the odd ranks come first
	if err != nil {
		return err
	}
	var odd, even []int
	for i := range w.Size() {
		if i%2 == 1 {
			odd = append(odd, i)
		} else {
			even = append(even, i)
		}
	}
	return cmp.Or(works(w, both, append(odd, even...)), equal("inter", both.TestInter(), false), both.Free(), x.Free(), half.Free())
}

// ranksWhere returns the ranks of w for which keep returns true, in descending order.
func ranksWhere(w *mpj.World, keep func(rank int) bool) []int {
	var ranks []int
	for i := w.Size() - 1; i >= 0; i-- {
		if keep(i) {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// acrossSplit makes intercommunicators of the ranks that are equal modulo 4 apart from their parity, so
// ranks 0, 1, 4, 5, ... and 2, 3, 6, 7, ..., in descending order.
func acrossSplit(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	color := w.Rank() % 4 / 2
	y, err := x.Split(color, -w.Rank())
	if err != nil {
		return err
	}
	near := ranksWhere(w, func(i int) bool { return i%2 == w.Rank()%2 && i%4/2 == color })
	far := ranksWhere(w, func(i int) bool { return i%2 != w.Rank()%2 && i%4/2 == color })
	if len(far) == 0 {
		return cmp.Or(equal("there", y != nil, false), x.Free(), half.Free())
	}
	both, err := y.Merge(w.Rank()%2 == 1)
	if err != nil {
		return err
	}
	return cmp.Or(equal("inter", y.TestInter(), true), same("group", ranksOf(w, y.Group()), near), same("remote group", ranksOf(w, y.RemoteGroup()), far),
		talks(y), equal("merged size", both.Size(), len(near)+len(far)), both.Free(), y.Free(), x.Free(), half.Free())
}

// acrossSplitOneSided passes a color in the even ranks only, and Undefined at one rank of each half.
func acrossSplitOneSided(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	none, err := x.Split(w.Rank()%2, 0)
	if err := cmp.Or(err, equal("there", none != nil, false)); err != nil {
		return err
	}
	color := 3
	if w.Rank() > 1 {
		color = mpj.Undefined
	}
	y, err := x.Split(color, 0)
	if err := cmp.Or(err, equal("there", y != nil, w.Rank() <= 1)); err != nil || y == nil {
		return cmp.Or(err, x.Free(), half.Free())
	}
	return cmp.Or(equal("size", y.Size(), 1), equal("remote size", y.RemoteSize(), 1), talks(y), y.Free(), x.Free(), half.Free())
}

// acrossCreate takes all even ranks in descending order, and the last odd rank. Then it takes no odd
// rank.
func acrossCreate(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	even, odd := ranksWhere(w, func(i int) bool { return i%2 == 0 }), ranksWhere(w, func(i int) bool { return i%2 == 1 })[:1]
	near, far := even, odd
	if w.Rank()%2 == 1 {
		near, far = odd, even
	}
	g, err := w.Group().Incl(near)
	if err != nil {
		return err
	}
	y, err := x.Create(g)
	if err := cmp.Or(err, equal("there", y != nil, g.Rank() != mpj.Undefined)); err != nil {
		return err
	}
	if y != nil {
		err := cmp.Or(same("group", ranksOf(w, y.Group()), near), same("remote group", ranksOf(w, y.RemoteGroup()), far), talks(y), y.Free())
		if err != nil {
			return err
		}
	}
	if w.Rank()%2 == 1 {
		g = mpj.GroupEmpty
	}
	none, err := x.Create(g)
	return cmp.Or(err, equal("there", none != nil, false), x.Free(), half.Free())
}

func acrossWrong(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	color := 0
	if w.Rank() == 0 {
		color = -9
	}
	_, err1 := x.Split(color, 0)
	_, err2 := x.Create(w.Group()) // contains ranks of the other half
	return cmp.Or(fails("Split", err1, mpj.ErrArg), fails("Create", err2, mpj.ErrGroup), x.Free(), half.Free())
}

// acrossFrom makes an intercommunicator from communicators that only the ranks of each half make, and
// duplicates it.
func acrossFrom(w *mpj.World) error {
	parity := w.Rank() % 2
	g, err := w.Group().Incl(ranksWhere(w, func(i int) bool { return i%2 == parity }))
	if err != nil {
		return err
	}
	half, err := w.CreateGroup(g, parity)
	if err != nil {
		return err
	}
	x, err := half.IntercommCreate(half.Size()-1, w.Comm, 1-parity, 6) // the leaders are ranks 0 and 1
	if err != nil {
		return err
	}
	y, r, err := x.Idup()
	if err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	return cmp.Or(equal("compare", x.Compare(y), mpj.Congruent), x.Free(), talks(y), y.Free(), half.Free())
}

func acrossCollective(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	return cmp.Or(fails("Barrier", mpj.Barrier(x), mpj.ErrComm), fails("Bcast", mpj.Bcast(x, []int{1}, 0), mpj.ErrComm), x.Free(), half.Free())
}
