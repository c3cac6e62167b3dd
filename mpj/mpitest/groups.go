package mpitest

import (
	"cmp"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Groups (MPI 4.0, 7.3). Their operations are local: they send no messages.
var groups = []Test{
	{"the world's group has all ranks", 1, true, worldGroup},
	{"incl and excl choose by rank", 1, true, inclExcl},
	{"ranges select their ranks", 1, true, ranges},
	{"union, intersection and difference keep the first group's order", 4, true, setOperations},
	{"ranks translate between groups", 2, true, translate},
	{"wrong ranks and ranges are errors", 1, true, wrongRanks},
}

// ranksOf returns the world ranks of the members of g.
func ranksOf(w *mpj.World, g mpj.Group) []int {
	ranks, err := g.TranslateRanks(numbers[int](0, g.Size()), w.Group())
	if err != nil {
		return nil
	}
	return ranks
}

func worldGroup(w *mpj.World) error {
	g := w.Group()
	return cmp.Or(equal("size", g.Size(), w.Size()), equal("rank", g.Rank(), w.Rank()),
		equal("compare", g.Compare(w.Group()), mpj.Identical), equal("empty", mpj.GroupEmpty.Size(), 0),
		equal("rank in the empty group", mpj.GroupEmpty.Rank(), mpj.Undefined))
}

func inclExcl(w *mpj.World) error {
	backwards := numbers[int](0, w.Size())
	slices.Reverse(backwards)
	g, err1 := w.Group().Incl(backwards)
	h, err2 := w.Group().Excl([]int{0})
	none, err3 := w.Group().Incl(nil)
	comparison := mpj.Similar
	if w.Size() == 1 {
		comparison = mpj.Identical
	}
	rank := w.Rank() - 1
	if rank < 0 {
		rank = mpj.Undefined
	}
	return cmp.Or(err1, err2, err3, same("Incl", ranksOf(w, g), backwards), equal("compare", g.Compare(w.Group()), comparison),
		same("Excl", ranksOf(w, h), numbers[int](1, w.Size()-1)), equal("rank", h.Rank(), rank), equal("none", none.Compare(mpj.GroupEmpty), mpj.Identical),
		equal("compare", h.Compare(w.Group()), mpj.Unequal))
}

func ranges(w *mpj.World) error {
	last := w.Size() - 1
	down, err1 := w.Group().RangeIncl([]mpj.Range{{First: last, Last: 0, Stride: -1}})
	odd, err2 := w.Group().RangeExcl([]mpj.Range{{First: 0, Last: last, Stride: 2}})
	var downWant, oddWant []int
	for i := range w.Size() {
		downWant = append(downWant, last-i)
		if i%2 == 1 {
			oddWant = append(oddWant, i)
		}
	}
	return cmp.Or(err1, err2, same("down", ranksOf(w, down), downWant), same("odd", ranksOf(w, odd), oddWant))
}

func setOperations(w *mpj.World) error {
	g, err1 := w.Group().Incl([]int{3, 1, 0})
	h, err2 := w.Group().Incl([]int{0, 2, 3})
	return cmp.Or(err1, err2, same("Union", ranksOf(w, g.Union(h)), []int{3, 1, 0, 2}),
		same("Intersection", ranksOf(w, g.Intersection(h)), []int{3, 0}), same("Difference", ranksOf(w, g.Difference(h)), []int{1}))
}

func translate(w *mpj.World) error {
	g, err1 := w.Group().Incl([]int{1, 0})
	h, err2 := w.Group().Excl([]int{0})
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	ranks, err := g.TranslateRanks([]int{0, 1, mpj.ProcNull}, h)
	return cmp.Or(err, same("ranks", ranks, []int{0, mpj.Undefined, mpj.ProcNull}))
}

func wrongRanks(w *mpj.World) error {
	g := w.Group()
	_, err1 := g.Incl([]int{w.Size()})
	_, err2 := g.Incl([]int{0, 0})
	_, err3 := g.Excl([]int{-1})
	_, err4 := g.RangeIncl([]mpj.Range{{First: 0, Last: 0, Stride: 0}})
	_, err5 := g.TranslateRanks([]int{w.Size()}, g)
	return cmp.Or(fails("Incl beyond", err1, mpj.ErrRank), fails("Incl twice", err2, mpj.ErrRank), fails("Excl", err3, mpj.ErrRank),
		fails("stride 0", err4, mpj.ErrArg), fails("TranslateRanks", err5, mpj.ErrRank))
}
