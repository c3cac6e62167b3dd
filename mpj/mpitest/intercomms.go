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

func acrossCollective(w *mpj.World) error {
	half, x, _, err := halves(w)
	if err != nil {
		return err
	}
	return cmp.Or(fails("Barrier", mpj.Barrier(x), mpj.ErrComm), fails("Bcast", mpj.Bcast(x, []int{1}, 0), mpj.ErrComm), x.Free(), half.Free())
}
