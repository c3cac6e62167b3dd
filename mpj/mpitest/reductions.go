package mpitest

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Reductions and their operations (MPI 4.0, 6.9 to 6.12).
var reductions = []Test{
	{"sum, prod, max and min of every number type", 1, true, arithmetic},
	{"logical and bitwise operations of every integer type", 1, true, logical},
	{"sum and prod of complex numbers", 1, true, complexes},
	{"maxloc and minloc return the lowest index", 1, true, locations},
	{"all reductions combine in rank order", 1, true, rankOrder},
	{"reductions work in place", 1, true, reduceInPlace},
	{"floating-point results have the same bits everywhere", 1, true, sameBits},
	{"reduce-local applies the operation", 1, true, reduceLocal},
	{"reductions of values combine in rank order", 1, true, valueReductions},
}

// reduced compares all reductions with op, at all counts, with a fold in rank order.
func reduced[T mpj.Element](c *mpj.Comm, name string, op mpj.Op[T], give func(rank, count int) []T) error {
	for _, count := range counts {
		if err := reducedOnce(c, count, op, give); err != nil {
			return fmt.Errorf("%s of %d elements: %w", name, count, err)
		}
	}
	return nil
}

// fold returns the combination of the contributions of ranks 0 to last, in rank order.
func fold[T mpj.Element](last, count int, op mpj.Op[T], give func(rank, count int) []T) []T {
	acc := give(0, count)
	for i := 1; i <= last; i++ {
		next := give(i, count)
		op(acc, next)
		acc = next
	}
	return acc
}

func reducedOnce[T mpj.Element](c *mpj.Comm, count int, op mpj.Op[T], give func(rank, count int) []T) error {
	n, rank := c.Size(), c.Rank()
	me, total, root := give(rank, count), fold(n-1, count, op, give), n/2
	atRoot, everywhere, prefix, before := make([]T, count), make([]T, count), make([]T, count), make([]T, count)
	err := cmp.Or(mpj.Reduce(c, me, atRoot, op, root), mpj.Allreduce(c, me, everywhere, op), mpj.Scan(c, me, prefix, op), mpj.Exscan(c, me, before, op))
	if err != nil {
		return err
	}
	if rank == root {
		err = same("Reduce", atRoot, total)
	}
	if err == nil && rank > 0 {
		err = same("Exscan", before, fold(rank-1, count, op, give))
	}
	return cmp.Or(err, same("Allreduce", everywhere, total), same("Scan", prefix, fold(rank, count, op, give)),
		reducedScattered(c, count, op, give), same("send buffer", me, give(rank, count)))
}

// reducedScattered divides n*count elements evenly, and then unevenly.
func reducedScattered[T mpj.Element](c *mpj.Comm, count int, op mpj.Op[T], give func(rank, count int) []T) error {
	n, rank := c.Size(), c.Rank()
	if count > 100 {
		count /= n
	}
	me, total := give(rank, n*count), fold(n-1, n*count, op, give)
	even, counts := make([]T, count), make([]int, n)
	for i := range counts {
		counts[i] = count
	}
	counts[0], counts[n-1] = counts[0]+counts[n-1], 0 // with n = 1: 0
	if n == 1 {
		counts[0] = count
	}
	from := 0
	for _, k := range counts[:rank] {
		from += k
	}
	uneven := make([]T, counts[rank])
	return cmp.Or(mpj.ReduceScatterBlock(c, me, even, op), mpj.ReduceScatter(c, me, uneven, counts, op),
		same("ReduceScatterBlock", even, total[rank*count:(rank+1)*count]), same("ReduceScatter", uneven, total[from:from+counts[rank]]))
}

// small returns small numbers, whose sums and products over a few ranks are exact.
func small[T mpj.Ordered](rank, count int) []T {
	s := make([]T, count)
	for i := range s {
		s[i] = T((rank*5+i*3)%3 + i%2)
	}
	return s
}

func arithmetic(w *mpj.World) error {
	return cmp.Or(
		numeric[int](w.Comm), numeric[int8](w.Comm), numeric[int16](w.Comm), numeric[int32](w.Comm), numeric[int64](w.Comm),
		numeric[uint](w.Comm), numeric[uint8](w.Comm), numeric[uint16](w.Comm), numeric[uint32](w.Comm), numeric[uint64](w.Comm),
		numeric[float32](w.Comm), numeric[float64](w.Comm),
	)
}

// numeric checks one operation at all counts and the others at one count.
func numeric[T mpj.Ordered](c *mpj.Comm) error {
	var zero T
	err := cmp.Or(reduced(c, "sum", mpj.Sum[T], small[T]), reducedOnce(c, 7, mpj.Prod[T], small[T]),
		reducedOnce(c, 7, mpj.Max[T], small[T]), reducedOnce(c, 7, mpj.Min[T], small[T]))
	if err != nil {
		return fmt.Errorf("%T: %w", zero, err)
	}
	return nil
}

func logical(w *mpj.World) error {
	return cmp.Or(
		bits[int](w.Comm), bits[int8](w.Comm), bits[int16](w.Comm), bits[int32](w.Comm), bits[int64](w.Comm),
		bits[uint](w.Comm), bits[uint8](w.Comm), bits[uint16](w.Comm), bits[uint32](w.Comm), bits[uint64](w.Comm),
	)
}

func bits[T mpj.Integer](c *mpj.Comm) error {
	var zero T
	for _, o := range []struct {
		name string
		op   mpj.Op[T]
	}{
		{"band", mpj.Band[T]}, {"bor", mpj.Bor[T]}, {"bxor", mpj.Bxor[T]}, {"land", mpj.Land[T]}, {"lor", mpj.Lor[T]}, {"lxor", mpj.Lxor[T]},
	} {
		if err := reducedOnce(c, 7, o.op, small[T]); err != nil {
			return fmt.Errorf("%s of %T: %w", o.name, zero, err)
		}
	}
	return nil
}

func complexes(w *mpj.World) error {
	give := func(rank, count int) []complex128 {
		s := make([]complex128, count)
		for i := range s {
			s[i] = complex(float64(rank%3), float64(i%2))
		}
		return s
	}
	return cmp.Or(reduced(w.Comm, "sum", mpj.Sum[complex128], give), reduced(w.Comm, "prod", mpj.Prod[complex128], give))
}

func locations(w *mpj.World) error {
	give := func(rank, count int) []mpj.Loc[float64] {
		s := make([]mpj.Loc[float64], count)
		for i := range s {
			s[i] = mpj.Loc[float64]{Value: float64((rank*3 + i) % 4), Index: int64(rank)}
		}
		return s
	}
	ints := func(rank, count int) []mpj.Loc[int32] {
		s := make([]mpj.Loc[int32], count)
		for i := range s {
			s[i] = mpj.Loc[int32]{Value: int32(-(rank * i) % 5), Index: int64(rank)}
		}
		return s
	}
	first := make([]mpj.Loc[float64], 1) // index of the first among equal values
	err := mpj.Allreduce(w.Comm, []mpj.Loc[float64]{{Value: 1, Index: int64(10 + w.Rank())}}, first, mpj.MaxLoc)
	return cmp.Or(err, equal("equal values", first[0].Index, 10),
		reduced(w.Comm, "maxloc", mpj.MaxLoc[float64], give), reduced(w.Comm, "minloc", mpj.MinLoc[float64], give),
		reduced(w.Comm, "maxloc of integers", mpj.MaxLoc[int32], ints), reduced(w.Comm, "minloc of integers", mpj.MinLoc[int32], ints))
}

// rankOrder combines maps x -> ax+b modulo 1009, which do not commute. Each map is one complex
// number, with integer parts that stay exact.
func rankOrder(w *mpj.World) error {
	compose := mpj.Each(func(f, g complex128) complex128 {
		return complex(math.Mod(real(f)*real(g), 1009), math.Mod(imag(f)*real(g)+imag(g), 1009))
	})
	return reduced(w.Comm, "affine maps", compose, func(rank, count int) []complex128 {
		s := make([]complex128, count)
		for i := range s {
			s[i] = complex(float64(2+rank%5), float64(rank+i%7))
		}
		return s
	})
}

func reduceInPlace(w *mpj.World) error {
	c, n := w.Comm, w.Size()
	for _, count := range counts {
		total := fold(n-1, count, mpj.Sum[int64], small[int64])
		everywhere, prefix := small[int64](c.Rank(), count), small[int64](c.Rank(), count)
		err := cmp.Or(mpj.Allreduce(c, nil, everywhere, mpj.Sum), mpj.Scan(c, nil, prefix, mpj.Sum),
			same("Allreduce", everywhere, total), same("Scan", prefix, fold(c.Rank(), count, mpj.Sum[int64], small[int64])))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			atRoot := small[int64](0, count)
			err = cmp.Or(mpj.Reduce(c, nil, atRoot, mpj.Sum, 0), same("Reduce", atRoot, total))
		} else {
			err = mpj.Reduce(c, small[int64](c.Rank(), count), nil, mpj.Sum, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameBits sums numbers of very different magnitudes, so that each order of additions produces
// different bits.
func sameBits(w *mpj.World) error {
	for _, count := range []int{1, 40, 2000, 20000} {
		me, sums := make([]float64, count), make([]float64, count)
		for i := range me {
			me[i] = math.Pow(10, float64((w.Rank()*7+i)%17-8)) / 3
		}
		again, atRoot := make([]float64, count), make([]float64, count)
		err := cmp.Or(mpj.Allreduce(w.Comm, me, sums, mpj.Sum), mpj.Allreduce(w.Comm, me, again, mpj.Sum),
			mpj.Reduce(w.Comm, me, atRoot, mpj.Sum, 0), mpj.Bcast(w.Comm, atRoot, 0))
		if err := cmp.Or(err, same("repeated", again, sums), same("at the root", atRoot, sums)); err != nil {
			return err
		}
		zeros := slices.Clone(sums)
		if err := cmp.Or(mpj.Bcast(w.Comm, zeros, w.Size()-1), same("at the last rank", zeros, sums)); err != nil {
			return err
		}
	}
	return nil
}

func reduceLocal(*mpj.World) error {
	inout := []int{1, 2, 3}
	err := mpj.ReduceLocal([]int{10, 20, 30}, inout, mpj.Sum)
	wrong := mpj.ReduceLocal([]int{1}, inout, mpj.Sum)
	return cmp.Or(err, same("sum", inout, []int{11, 22, 33}), fails("unequal lengths", wrong, mpj.ErrBuffer))
}

// valueReductions combines texts of different lengths.
func valueReductions(w *mpj.World) error {
	c, n, rank, root := w.Comm, w.Size(), w.Rank(), w.Size()/2
	text := func(from, to int) (s string) {
		for i := range to - from {
			s += fmt.Sprint(100*(from+i), ";")
		}
		return s
	}
	join := func(a, b string) string { return a + b }
	reduced, err1 := mpj.ReduceValue(c, text(rank, rank+1), join, root)
	everywhere, err2 := mpj.AllreduceValue(c, text(rank, rank+1), join)
	prefix, err3 := mpj.ScanValue(c, text(rank, rank+1), join)
	before, err4 := mpj.ExscanValue(c, text(rank, rank+1), join)
	want := ""
	if rank == root {
		want = text(0, n)
	}
	return cmp.Or(err1, err2, err3, err4, equal("ReduceValue", reduced, want), equal("AllreduceValue", everywhere, text(0, n)),
		equal("ScanValue", prefix, text(0, rank+1)), equal("ExscanValue", before, text(0, rank)))
}
