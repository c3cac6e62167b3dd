package mpj

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// multiply multiplies 2×2 matrices modulo 2^64, which is not commutative.
func multiply(in, inout []uint64) {
	for i := 0; i < len(in); i += 4 {
		a, b := in[i:i+4], slices.Clone(inout[i:i+4])
		for row := range 2 {
			for column := range 2 {
				inout[i+2*row+column] = a[2*row]*b[column] + a[2*row+1]*b[2+column]
			}
		}
	}
}

func someMatrices(rank, count int) []uint64 {
	m := make([]uint64, 4*count)
	for i := range m {
		m[i] = uint64(3*rank + i%11 + 1)
	}
	return m
}

// affine composes maps x -> ax+b modulo 2^64, each of which consists of two elements.
func affine(in, inout []uint64) {
	for i := 0; i < len(in); i += 2 {
		inout[i], inout[i+1] = in[i]*inout[i], in[i+1]*inout[i]+inout[i+1]
	}
}

// triangular multiplies upper triangular 2×2 matrices of three elements.
func triangular(in, inout []uint64) {
	for i := 0; i < len(in); i += 3 {
		a, b := in[i:i+3], inout[i:i+3]
		b[0], b[1], b[2] = a[0]*b[0], a[0]*b[1]+a[1]*b[2], a[2]*b[2]
	}
}

// multiply4 multiplies 4×4 matrices.
func multiply4(in, inout []uint64) {
	for i := 0; i < len(in); i += 16 {
		a, b := in[i:i+16], slices.Clone(inout[i:i+16])
		for k := range b {
			inout[i+k] = 0
			for j := range 4 {
				inout[i+k] += a[k/4*4+j] * b[j*4+k%4]
			}
		}
	}
}

// itemOps are operations on items of different lengths. They are associative, but not commutative.
var itemOps = []struct {
	length int // elements of an item
	op     Op[uint64]
}{{1, compose}, {2, affine}, {3, triangular}, {4, multiply}, {16, multiply4}}

// TestItemsAreNotSplit checks that no algorithm splits an item.
func TestItemsAreNotSplit(t *testing.T) {
	for _, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for _, n := range []int{1, 2, 3, 4, 8} {
			err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: n, Replicas: 1}), func(w *World) error {
				for _, x := range itemOps {
					for _, count := range []int{0, 1, 3, 4, 250, 252, beyondSwitch} {
						if err := itemsAreRight(w, x.length, x.op, count); err != nil {
							return fmt.Errorf("%d items of %d elements: %w", count, x.length, err)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%q, n=%d: %v", forced, n, err)
			}
		}
	}
}

// itemsAreRight checks all reductions of count items with a number of elements each.
func itemsAreRight(w *World, elements int, plain Op[uint64], count int) error {
	op, length := Items(elements, plain), elements*count
	give := func(rank int) []uint64 {
		s := make([]uint64, length)
		for i := range s {
			s[i] = uint64(3*rank + i%11 + 1)
		}
		return s
	}
	up := func(rank int) []uint64 {
		all := give(rank)
		for r := rank - 1; r >= 0; r-- {
			plain(give(r), all)
		}
		return all
	}
	n, rank := w.Size(), w.Rank()
	mine, total := give(rank), up(n-1)
	atRoot, everywhere, prefix, before := make([]uint64, length), make([]uint64, length), make([]uint64, length), make([]uint64, length)
	counts, wantBefore := make([]int, n), make([]uint64, length)
	counts[n-1] = length
	uneven := make([]uint64, counts[rank])
	if rank > 0 {
		wantBefore = up(rank - 1)
	}
	err := first(Reduce(w.Comm, mine, atRoot, op, 0), Allreduce(w.Comm, mine, everywhere, op), Scan(w.Comm, mine, prefix, op),
		Exscan(w.Comm, mine, before, op), ReduceScatter(w.Comm, mine, uneven, counts, op),
		want("Allreduce", everywhere, total), want("Scan", prefix, up(rank)), want("Exscan", before, wantBefore))
	if count%n == 0 {
		part := make([]uint64, length/n)
		err = first(err, ReduceScatterBlock(w.Comm, mine, part, op), want("ReduceScatterBlock", part, total[rank*len(part):(rank+1)*len(part)]))
	}
	if rank == 0 {
		err = first(err, want("Reduce", atRoot, total))
	}
	if rank == n-1 {
		err = first(err, want("ReduceScatter", uneven, total))
	}
	return err
}

// TestIncompleteItemsAreRefused checks that a vector that is not a whole number of items is rejected
// before a message is sent.
func TestIncompleteItemsAreRefused(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		product, three, even := Items(4, multiply), make([]uint64, 3), make([]uint64, 6*w.Size())
		counts := make([]int, w.Size())
		counts[0] = len(even)
		for name, err := range map[string]error{
			"Allreduce":          Allreduce(w.Comm, nil, three, product),
			"Reduce":             Reduce(w.Comm, three, three, product, 0),
			"Scan":               Scan(w.Comm, nil, three, product),
			"ReduceScatterBlock": ReduceScatterBlock(w.Comm, even, make([]uint64, 6), product),
			"ReduceScatter":      ReduceScatter(w.Comm, nil, make([]uint64, 6), []int{6}, product),
			"ReduceLocal":        ReduceLocal(three, three, product),
		} {
			if !errors.Is(err, ErrCount) {
				return fmt.Errorf("%s: want ErrCount, got: %w", name, err)
			}
		}
		return first(want("nil", []bool{Items[int](2, nil) == nil}, []bool{true}), ReduceLocal(three[:0], three[:0], product))
	})
}

// TestOperationsOnImpossibleItemsAreRefused checks that an item length below 1, or beyond every
// memory, is an error for every length of the vectors.
func TestOperationsOnImpossibleItemsAreRefused(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for _, n := range []int{0, -4, math.MaxInt} {
			none := Items(n, multiply)
			for _, length := range []int{0, 4, 8} {
				b, even := make([]uint64, length), make([]uint64, length*w.Size())
				counts := make([]int, w.Size())
				counts[0] = length
				for name, err := range map[string]error{
					"Allreduce":          Allreduce(w.Comm, nil, b, none),
					"Reduce":             Reduce(w.Comm, b, b, none, 0),
					"Scan":               Scan(w.Comm, nil, b, none),
					"Exscan":             Exscan(w.Comm, nil, b, none),
					"ReduceScatterBlock": ReduceScatterBlock(w.Comm, even, b, none),
					"ReduceScatter":      ReduceScatter(w.Comm, nil, b, counts, none),
					"ReduceLocal":        ReduceLocal(b, b, none),
				} {
					if !errors.Is(err, ErrOp) {
						return fmt.Errorf("%s of %d elements: want ErrOp, got: %w", name, length, err)
					}
				}
			}
		}
		return nil
	})
}

// TestItemsOfEveryElementType checks that reductions find the item length for every size of element,
// and for named types, and that other operations have items of one element.
func TestItemsOfEveryElementType(t *testing.T) {
	type metres float32
	for name, got := range map[string]int{
		"int8": itemLength(Items(3, Sum[int8])), "int16": itemLength(Items(3, Sum[int16])), "metres": itemLength(Items(3, Sum[metres])),
		"complex128": itemLength(Items(3, Sum[complex128])), "Loc[uint8]": itemLength(Items(3, MaxLoc[uint8])),
		"items of items": itemLength(Items(3, Items(1, Sum[int]))),
	} {
		if got != 3 {
			t.Errorf("%s: items of %d elements, want 3", name, got)
		}
	}
	if got := itemLength(Sum[int]) + itemLength(Each(func(a, b int) int { return a })) + itemLength(wrapped(Items(3, Sum[int]))); got != 3 {
		t.Errorf("operations without Items have items of %d elements together, want 3", got)
	}
}

// wrapped returns an operation that calls op, whose items a reduction cannot see.
func wrapped[T Element](op Op[T]) Op[T] {
	return func(in, inout []T) { op(in, inout) }
}

// multiplyWhole is multiply, but does not notice that an item is incomplete.
func multiplyWhole(in, inout []uint64) {
	whole := len(in) / 4 * 4
	multiply(in[:whole], inout[:whole])
}

// beyondSwitch is an odd number of 2×2 matrices with more bytes than Allreduce combines without
// splitting the vector. Two halves of the elements would begin within a matrix.
const beyondSwitch = 513

// TestWrappedItemsAreNotSplitSilently checks that a reduction panics if it splits an item of a
// function that calls the result of Items.
func TestWrappedItemsAreNotSplitSilently(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		for _, forced := range []string{"reduce=pairwise,allreduce=ring", "reduce=rabenseifner,allreduce=rabenseifner"} {
			t.Setenv(collectiveVariable, forced)
			for name, reduce := range map[string]func(*Comm, []uint64, []uint64, Op[uint64]) error{
				"Allreduce": Allreduce[uint64],
				"Reduce":    func(c *Comm, send, recv []uint64, op Op[uint64]) error { return Reduce(c, send, recv, op, 0) },
			} {
				err := RunLocal(context.Background(), n, func(w *World) (err error) {
					defer func() {
						if failed := recover(); failed != nil {
							err = fmt.Errorf("panic: %v", failed)
						}
					}()
					mine := someMatrices(w.Rank(), beyondSwitch+n%2) // thirds of 513 matrices are whole matrices
					return reduce(w.Comm, mine, make([]uint64, len(mine)), wrapped(Items(4, multiplyWhole)))
				})
				if err == nil || !strings.Contains(err.Error(), "panic: mpj.Items: called with ") {
					t.Errorf("%s with %s, n=%d: got %v, want a panic", name, forced, n, err)
				}
			}
		}
	}
}

// TestCheckFindsOperationsOnLargerItems checks that with P2PMPI_CHECK, every reduction rejects an
// operation on items of several elements that does not state their length.
func TestCheckFindsOperationsOnLargerItems(t *testing.T) {
	t.Setenv(checkVariable, "1")
	for name, op := range map[string]Op[uint64]{
		"plain": multiplyWhole, "panicking": multiply, "wrapped": wrapped(Items(4, multiplyWhole)), "too short items": Items(2, multiplyWhole),
	} {
		for _, n := range []int{1, 2, 3, 4} {
			err := RunLocal(context.Background(), n, func(w *World) error { return refusesItems(w, op) })
			if err != nil {
				t.Errorf("%s, n=%d: %v", name, n, err)
			}
		}
	}
}

func refusesItems(w *World, op Op[uint64]) error {
	c, counts := w.Comm, make([]int, w.Size())
	mine, wide := someMatrices(w.Rank(), beyondSwitch), someMatrices(w.Rank(), beyondSwitch*w.Size())
	recv := make([]uint64, len(mine))
	for i := range counts {
		counts[i] = len(mine)
	}
	started := func(r *Request, err error) error { return err }
	for _, x := range []struct {
		name string
		call func() error
	}{
		{"Reduce", func() error { return Reduce(c, mine, recv, op, 0) }},
		{"Allreduce", func() error { return Allreduce(c, mine, recv, op) }},
		{"Scan", func() error { return Scan(c, mine, recv, op) }},
		{"Exscan", func() error { return Exscan(c, mine, recv, op) }},
		{"ReduceScatterBlock", func() error { return ReduceScatterBlock(c, wide, recv, op) }},
		{"ReduceScatter", func() error { return ReduceScatter(c, wide, recv, counts, op) }},
		{"Ireduce", func() error { return started(Ireduce(c, mine, recv, op, 0)) }},
		{"Iallreduce", func() error { return started(Iallreduce(c, mine, recv, op)) }},
		{"Iscan", func() error { return started(Iscan(c, mine, recv, op)) }},
		{"Iexscan", func() error { return started(Iexscan(c, mine, recv, op)) }},
		{"IreduceScatterBlock", func() error { return started(IreduceScatterBlock(c, wide, recv, op)) }},
		{"IreduceScatter", func() error { return started(IreduceScatter(c, wide, recv, counts, op)) }},
	} {
		if err := x.call(); !errors.Is(err, ErrOp) {
			return fmt.Errorf("%s: want ErrOp, got: %w", x.name, err)
		}
	}
	return nil
}

// TestCheckAcceptsOperationsOnItems checks that P2PMPI_CHECK accepts operations whose results do not
// depend on the division of vectors, and operations that it cannot judge.
func TestCheckAcceptsOperationsOnItems(t *testing.T) {
	t.Setenv(checkVariable, "1")
	inEveryShape(t, func(w *World) error {
		mine, recv := someMatrices(w.Rank(), beyondSwitch), make([]uint64, 4*beyondSwitch)
		calls := 0
		random := func(in, inout []uint64) {
			calls++
			inout[0] = uint64(calls)
		}
		strict := func(in, inout []uint64) {
			if slices.Equal(in, inout) {
				panic("both vectors are of the same rank")
			}
			Sum(in, inout)
		}
		locs := []Loc[int8]{{1, int64(w.Rank())}, {2, 3}}
		dirty := func(in, inout []Loc[int8]) {
			MaxLoc(in, inout)
			memoryOf(inout)[3]++ // padding
		}
		return first(Allreduce(w.Comm, mine, recv, Items(4, multiply)), Allreduce(w.Comm, mine[:4], recv[:4], Items(4, multiply)),
			Allreduce(w.Comm, mine[:3], recv[:3], random), Allreduce(w.Comm, mine, recv, strict), Allreduce(w.Comm, nil, locs, dirty))
	})
}

// TestOperationsGetNoEmptyVectors checks that an operation is called only on vectors with elements,
// also if there are fewer elements than ranks.
func TestOperationsGetNoEmptyVectors(t *testing.T) {
	last := func(in, inout []uint64) { inout[len(in)-1] += in[len(in)-1] }
	for _, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for _, n := range []int{3, 8} {
			err := RunLocal(context.Background(), n, func(w *World) error {
				for length := range 2 {
					one, sum, parts := make([]uint64, length), make([]uint64, length), make([]int, n)
					parts[n-1] = length
					part := make([]uint64, parts[w.Rank()])
					err := first(Reduce(w.Comm, one, sum, last, 0), Allreduce(w.Comm, one, sum, last), Scan(w.Comm, one, sum, last),
						Exscan(w.Comm, one, sum, last), ReduceScatter(w.Comm, one, part, parts, last),
						ReduceScatterBlock(w.Comm, nil, make([]uint64, n*length), last))
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%q, n=%d: %v", forced, n, err)
			}
		}
	}
}

// TestPaddingOfResultsIsClear checks that an operation that writes into the padding of a Loc has no
// effect on messages.
func TestPaddingOfResultsIsClear(t *testing.T) {
	dirty := reductionOf(func(in, inout []Loc[int16]) {
		for i := range in {
			copy(memoryOf(inout[i:])[:locSize], slices.Repeat([]byte{0xff}, locSize))
		}
	}, 1)
	inout := make([]byte, 2*locSize)
	dirty.Combine(make([]byte, 2*locSize), inout)
	clean := []byte{0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if !slices.Equal(inout, slices.Repeat(clean, 2)) {
		t.Errorf("the result of the operation is %x", inout)
	}
}
