package mpj

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A matrix is a 2×2 matrix modulo 2^64.
type matrix [4]uint64

// A labelled is a matrix with padding and with fields that its datatypes omit.
type labelled struct {
	Kind   uint8
	M      matrix
	Serial uint32
}

func multiplyMatrices(in, inout []matrix) {
	for i := range in {
		multiply(in[i][:], inout[i][:])
	}
}

// matrixOp multiplies the matrices of items, and writes the other fields, which are not reduced.
var matrixOp = OpOf(func(in, inout []labelled) {
	for i := range in {
		multiply(in[i].M[:], inout[i].M[:])
		inout[i].Kind, inout[i].Serial = 77, 78
	}
})

func labelledMatrices(rank, count int) []labelled {
	all := make([]labelled, count)
	for i := range all {
		all[i] = labelled{Kind: 1, M: matrix(someMatrices(rank, count)[4*i:]), Serial: 3}
	}
	return all
}

// A typedWay is a kind of datatype whose items contain a matrix.
type typedWay struct {
	name string
	op   TypedOp
	// of returns items with the given matrices, and a function that returns their matrices, or nil if
	// the reduction changed other data.
	of func(matrices []uint64) (Typed, func() []uint64)
}

func typedWays() []typedWay {
	four, field := TypeOf[uint64]().Contiguous(4), TypeStructOf[labelled]("M")
	return []typedWay{
		{"contiguous", OpOf(multiplyMatrices), func(m []uint64) (Typed, func() []uint64) {
			return four.At(m, 0, len(m)/4), func() []uint64 { return m }
		}},
		{"items of numbers", OpOf(Items(4, multiply)), func(m []uint64) (Typed, func() []uint64) {
			return four.At(m, 0, len(m)/4), func() []uint64 { return m }
		}},
		{"field of a struct", matrixOp, func(m []uint64) (Typed, func() []uint64) {
			all := make([]labelled, len(m)/4)
			for i := range all {
				all[i] = labelled{Kind: 1, M: matrix(m[4*i:]), Serial: 3}
			}
			return field.At(all, 0, len(all)), func() []uint64 {
				var m []uint64
				for _, x := range all {
					if x.Kind != 1 || x.Serial != 3 {
						return nil
					}
					m = append(m, x.M[:]...)
				}
				return m
			}
		}},
	}
}

// productOf returns the products of the matrices of ranks 0 to last.
func productOf(last, count int) []uint64 {
	acc := someMatrices(0, count)
	for r := 1; r <= last; r++ {
		next := someMatrices(r, count)
		multiply(acc, next)
		acc = next
	}
	return acc
}

// TestTypedReductionsMatchTheDefinition checks all reductions of items of datatypes with every
// algorithm, with counts that split a vector of elements within an item.
func TestTypedReductionsMatchTheDefinition(t *testing.T) {
	for _, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for _, n := range []int{1, 2, 3, 4, 8} {
			err := RunLocal(context.Background(), n, func(w *World) error {
				for _, way := range typedWays() {
					for _, count := range []int{0, 1, 3, 9, beyondSwitch} {
						if err := way.reducesAll(w.Comm, count); err != nil {
							return fmt.Errorf("%s, %d items: %w", way.name, count, err)
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

// reducesAll checks all reductions of count items, with separate buffers and in place.
func (y typedWay) reducesAll(c *Comm, count int) error {
	return first(y.reducesVectors(c, count), y.reducesBlocks(c, count), y.reducesInPlace(c, count), Barrier(c))
}

func (y typedWay) reducesVectors(c *Comm, count int) error {
	n, me, root := c.Size(), c.Rank(), count%c.Size()
	total := productOf(n-1, count)
	send, _ := y.of(someMatrices(me, count))
	zeros := func() (Typed, func() []uint64) { return y.of(make([]uint64, 4*count)) }
	atRoot, reduced := zeros()
	everywhere, allReduced := zeros()
	prefix, scanned := zeros()
	lower, exscanned := zeros()
	wantRoot, wantLower := make([]uint64, 4*count), make([]uint64, 4*count)
	if me == root {
		wantRoot = total
	}
	if me > 0 {
		wantLower = productOf(me-1, count)
	}
	return first(
		ReduceTyped(c, send, atRoot, y.op, root), AllreduceTyped(c, send, everywhere, y.op),
		ScanTyped(c, send, prefix, y.op), ExscanTyped(c, send, lower, y.op),
		want("ReduceTyped", reduced(), wantRoot), want("AllreduceTyped", allReduced(), total),
		want("ScanTyped", scanned(), productOf(me, count)), want("ExscanTyped", exscanned(), wantLower))
}

func (y typedWay) reducesBlocks(c *Comm, count int) error {
	n, me := c.Size(), c.Rank()
	each := count / n
	counts, from := make([]int, n), 0
	for i := range counts {
		counts[i] = (i + count) % 3 * each
		if i < me {
			from += counts[i]
		}
	}
	all := 0
	for _, k := range counts {
		all += k
	}
	even, _ := y.of(someMatrices(me, each*n))
	uneven, _ := y.of(someMatrices(me, all))
	block, evenPart := y.of(make([]uint64, 4*each))
	part, unevenPart := y.of(make([]uint64, 4*counts[me]))
	return first(
		ReduceScatterBlockTyped(c, even, block, y.op), ReduceScatterTyped(c, uneven, part, counts, y.op),
		want("ReduceScatterBlockTyped", evenPart(), productOf(n-1, each*n)[4*me*each:][:4*each]),
		want("ReduceScatterTyped", unevenPart(), productOf(n-1, all)[4*from:][:4*counts[me]]))
}

func (y typedWay) reducesInPlace(c *Comm, count int) error {
	n, me, root, none := c.Size(), c.Rank(), count%c.Size(), Typed{}
	mine := func() (Typed, func() []uint64) { return y.of(someMatrices(me, count)) }
	atRoot, reduced := mine()
	everywhere, allReduced := mine()
	prefix, scanned := mine()
	lower, exscanned := mine()
	whole, blocks := y.of(someMatrices(me, count*n))
	send, recv, wantRoot, wantLower := atRoot, none, someMatrices(me, count), someMatrices(me, count)
	if me == root {
		send, recv, wantRoot = none, atRoot, productOf(n-1, count)
	}
	if me > 0 {
		wantLower = productOf(me-1, count)
	}
	err := first(
		ReduceTyped(c, send, recv, y.op, root), AllreduceTyped(c, none, everywhere, y.op),
		ScanTyped(c, none, prefix, y.op), ExscanTyped(c, none, lower, y.op), ReduceScatterBlockTyped(c, none, whole, y.op),
		want("ReduceTyped", reduced(), wantRoot), want("AllreduceTyped", allReduced(), productOf(n-1, count)),
		want("ScanTyped", scanned(), productOf(me, count)), want("ExscanTyped", exscanned(), wantLower))
	if err != nil {
		return err
	}
	return want("ReduceScatterBlockTyped", blocks()[:4*count], productOf(n-1, count*n)[4*me*count:][:4*count])
}

// TestTypedReductionsHaveNonblockingForms checks that all nonblocking forms can be in progress
// together.
func TestTypedReductionsHaveNonblockingForms(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for _, y := range typedWays() {
			for _, count := range []int{1, beyondSwitch} {
				if err := y.startsAll(w.Comm, count); err != nil {
					return fmt.Errorf("%s, %d items: %w", y.name, count, err)
				}
			}
		}
		return nil
	})
}

func (y typedWay) startsAll(c *Comm, count int) error {
	n, me := c.Size(), c.Rank()
	counts := make([]int, n)
	for i := range counts {
		counts[i] = count
	}
	send, _ := y.of(someMatrices(me, count))
	wide, _ := y.of(someMatrices(me, count*n))
	results, requests := make([]func() []uint64, 6), make([]*Request, 6)
	recv := make([]Typed, 6)
	for i := range recv {
		recv[i], results[i] = y.of(make([]uint64, 4*count))
	}
	var errs [6]error
	requests[0], errs[0] = IreduceTyped(c, send, recv[0], y.op, 0)
	requests[1], errs[1] = IallreduceTyped(c, send, recv[1], y.op)
	requests[2], errs[2] = IscanTyped(c, send, recv[2], y.op)
	requests[3], errs[3] = IexscanTyped(c, send, recv[3], y.op)
	requests[4], errs[4] = IreduceScatterBlockTyped(c, wide, recv[4], y.op)
	requests[5], errs[5] = IreduceScatterTyped(c, wide, recv[5], counts, y.op)
	if err := first(errs[:]...); err != nil {
		return err
	}
	if _, err := Waitall(requests...); err != nil {
		return err
	}
	total, part := productOf(n-1, count), productOf(n-1, count*n)[4*me*count:][:4*count]
	wantRoot, wantLower := make([]uint64, 4*count), make([]uint64, 4*count)
	if me == 0 {
		wantRoot = total
	} else {
		wantLower = productOf(me-1, count)
	}
	return first(
		want("IreduceTyped", results[0](), wantRoot), want("IallreduceTyped", results[1](), total),
		want("IscanTyped", results[2](), productOf(me, count)), want("IexscanTyped", results[3](), wantLower),
		want("IreduceScatterBlockTyped", results[4](), part), want("IreduceScatterTyped", results[5](), part))
}

// TestWrongTypedReductionsAreRefused checks that every rank rejects wrong arguments before it sends a
// message, and that the communicator can still be used.
func TestWrongTypedReductionsAreRefused(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		c, n := w.Comm, w.Size()
		m := make([]uint64, 12*n)
		four, op := TypeOf[uint64]().Contiguous(4), OpOf(multiplyMatrices)
		one, three, all := four.At(m, 0, 1), four.At(m, 0, 3), four.At(m, 0, 3*n)
		shifted := four.Resized(8, 32)
		outside := TypeOf[uint64]().Indexed([]int{4}, []int{1}).Resized(0, 32)
		overlapping := TypeOf[uint64]().Vector(2, 2, 3).Resized(0, 32)
		allreduce := func(x Typed, op TypedOp) error { return AllreduceTyped(c, Typed{}, x, op) }
		_, started := IallreduceTyped(c, one, three, op)
		counts := make([]int, n)
		for _, x := range []struct {
			name  string
			err   error
			class Class
		}{
			{"zero operation", allreduce(one, TypedOp{}), ErrOp},
			{"nil operation", allreduce(one, OpOf[matrix](nil)), ErrOp},
			{"operation on pointers", allreduce(one, OpOf(func(in, inout []*int) {})), ErrOp},
			{"operation on nothing", allreduce(one, OpOf(func(in, inout []struct{}) {})), ErrOp},
			{"operation on empty items", allreduce(one, OpOf(Items(0, multiply))), ErrOp},
			{"operation on items beyond every memory", allreduce(four.At(m, 0, 0), OpOf(Items(math.MaxInt, multiply))), ErrOp},
			{"operation on smaller items", allreduce(one, OpOf(Sum[uint64])), ErrOp},
			{"operation on larger items", allreduce(one, OpOf(Items(8, multiply))), ErrOp},
			{"operation on other items, none of them", allreduce(four.At(m, 0, 0), OpOf(Sum[uint64])), ErrOp},
			{"another extent", allreduce(four.Resized(0, 64).At(m, 0, 1), op), ErrOp},
			{"data beyond the extent", allreduce(outside.At(m, 0, 1), op), ErrOp},
			{"overlapping items", allreduce(overlapping.At(m, 0, 1), op), ErrOp},
			{"invalid datatype", allreduce(four.Contiguous(-1).At(m, 0, 1), op), ErrType},
			{"no buffer at all", allreduce(Typed{}, op), ErrType},
			{"no send buffer at a rank that is not root", ReduceTyped(c, Typed{}, one, op, (w.Rank()+1)%n), map[bool]Class{true: "", false: ErrType}[n == 1]},
			{"root", ReduceTyped(c, one, three, op, n), ErrRoot},
			{"unequal counts", AllreduceTyped(c, one, three, op), ErrBuffer},
			{"unequal counts of Scan", ScanTyped(c, three, one, op), ErrBuffer},
			{"unequal counts of Iallreduce", started, ErrBuffer},
			{"uneven blocks", ReduceScatterBlockTyped(c, all, one, op), ErrBuffer},
			{"counts", ReduceScatterTyped(c, all, three, counts, op), ErrCount},
			{"local: unequal counts", ReduceLocalTyped(one, three, op), ErrBuffer},
			{"local: operation", ReduceLocalTyped(one, one, OpOf(Sum[uint64])), ErrOp},
			{"local: zero", ReduceLocalTyped(Typed{}, one, op), ErrType},
		} {
			if x.class != "" && !errors.Is(x.err, x.class) {
				return fmt.Errorf("%s: want %q, got: %w", x.name, string(x.class), x.err)
			}
		}
		return first(allreduce(shifted.At(m, 0, 1), op), Barrier(c))
	})
}

// TestTypedReductionsOfNothing checks reductions of datatypes without data.
func TestTypedReductionsOfNothing(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		all := labelledMatrices(w.Rank(), 3)
		x := TypeStruct[labelled]().Resized(0, int(unsafe.Sizeof(labelled{}))).At(all, 0, 3)
		return first(AllreduceTyped(w.Comm, Typed{}, x, matrixOp), ScanTyped(w.Comm, x, x, matrixOp),
			want("items", all, labelledMatrices(w.Rank(), 3)))
	})
}

func TestReduceLocalTyped(t *testing.T) {
	for _, y := range typedWays() {
		in, _ := y.of(someMatrices(0, 5))
		inout, result := y.of(someMatrices(1, 5))
		if err := first(ReduceLocalTyped(in, inout, y.op), want(y.name, result(), productOf(1, 5))); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckComparesTypedReductions checks that P2PMPI_CHECK detects different arguments of typed
// reductions.
func TestCheckComparesTypedReductions(t *testing.T) {
	t.Setenv(checkVariable, "1")
	inEveryShape(t, func(w *World) error {
		if w.Size() == 1 {
			return nil
		}
		lowest, m := w.Rank() == 0, make([]uint64, 24)
		four, two := TypeOf[uint64]().Contiguous(4), TypeOf[uint64]().Contiguous(2)
		kinds := map[bool]Typed{true: four.At(m, 0, 3), false: two.At(m, 0, 6)}
		counts := map[bool]Typed{true: four.At(m, 0, 3), false: four.At(m, 0, 2)}
		sum := map[bool]TypedOp{true: OpOf(Items(4, Sum[uint64])), false: OpOf(Items(2, Sum[uint64]))}
		send, recv := four.At(m, 0, 3), four.At(make([]uint64, 12), 0, 3)
		if !lowest {
			send = Typed{}
		}
		for _, x := range []struct {
			name  string
			err   error
			class Class
		}{
			{"items", AllreduceTyped(w.Comm, Typed{}, kinds[lowest], sum[lowest]), ErrType},
			{"counts", ScanTyped(w.Comm, Typed{}, counts[lowest], sum[true]), ErrCount},
			{"in place", AllreduceTyped(w.Comm, send, recv, sum[true]), ErrBuffer},
			{"root", ReduceTyped(w.Comm, recv, recv, sum[true], min(w.Rank(), 1)), ErrRoot},
		} {
			if !errors.Is(x.err, x.class) {
				return fmt.Errorf("%s: want %q, got: %w", x.name, string(x.class), x.err)
			}
		}
		return nil
	})
}

// TestCheckFindsTypedOperationsOnLargerItems checks that with P2PMPI_CHECK, a reduction rejects an
// operation that combines several items of the datatype as one.
func TestCheckFindsTypedOperationsOnLargerItems(t *testing.T) {
	t.Setenv(checkVariable, "1")
	inEveryShape(t, func(w *World) error {
		mine, recv := someMatrices(w.Rank(), beyondSwitch), make([]uint64, 4*beyondSwitch)
		for _, op := range []Op[uint64]{multiplyWhole, multiply, wrapped(Items(4, multiplyWhole)), Items(2, multiplyWhole)} {
			part := TypeOf[uint64]().Contiguous(itemLength(op))
			count := len(mine) / itemLength(op)
			err := AllreduceTyped(w.Comm, part.At(mine, 0, count), part.At(recv, 0, count), OpOf(op))
			if !errors.Is(err, ErrOp) {
				return fmt.Errorf("items of %d elements: want ErrOp, got: %w", itemLength(op), err)
			}
		}
		return nil
	})
}

// TestTypedReductionsHaveTheSameMessagesAtAllReplicas checks that memory that an operation leaves in
// the padding of items is not sent. A difference would end the job.
func TestTypedReductionsHaveTheSameMessagesAtAllReplicas(t *testing.T) {
	err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: 3, Replicas: 2}), func(w *World) error {
		field := TypeStructOf[labelled]("M")
		op := OpOf(func(in, inout []labelled) {
			for i := range in {
				multiply(in[i].M[:], inout[i].M[:])
				inout[i].Kind = uint8(w.Replica())
			}
		})
		all := labelledMatrices(w.Rank(), 7)
		err := AllreduceTyped(w.Comm, Typed{}, field.At(all, 0, len(all)), op)
		var got []uint64
		for _, x := range all {
			got = append(got, x.M[:]...)
		}
		return first(err, want("product", got, productOf(2, 7)))
	})
	if err != nil {
		t.Error(err)
	}
}
