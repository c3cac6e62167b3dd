package mpitest

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Reductions of items that consist of several elements, and of items of derived datatypes (MPI 4.0,
// 6.9.5: an operation is called on a number of items of the datatype).
var items = []Test{
	{"items of several elements are not split", 1, true, wholeItems},
	{"all reductions take items of datatypes", 1, true, typedReductions},
	{"all reductions of datatypes have nonblocking forms", 1, true, typedReductionsStarted},
	{"reductions of datatypes work in place", 1, true, typedInPlace},
	{"reductions of datatypes leave gaps unchanged", 1, true, gapsUnchanged},
	{"reductions match datatypes of equal signatures", 1, true, otherLayouts},
	{"reductions of no items do nothing", 1, true, noItems},
	{"wrong items and operations are errors", 1, true, wrongItems},
	{"reduce-local takes items of datatypes", 1, true, typedReduceLocal},
}

// itemCounts are numbers of matrices. Halves and quarters of the elements of an odd number of
// matrices begin within a matrix, and most thirds do. The longest vector has more than 16 KiB.
var itemCounts = []int{0, 1, 5, 513}

// manyItems is a number of matrices with more than 64 KiB.
const manyItems = 2051

// A matrix is a 2×2 matrix modulo 2^64. Multiplication is associative, but not commutative.
type matrix [4]uint64

func times(a, b matrix) matrix {
	return matrix{a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3], a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3]}
}

// multiply multiplies matrices of four elements each.
func multiply(in, inout []uint64) {
	for i := 0; i+4 <= len(in); i += 4 {
		*(*matrix)(inout[i:]) = times(matrix(in[i:]), matrix(inout[i:]))
	}
}

// multiplyMatrices is multiply for a vector of matrices.
func multiplyMatrices(in, inout []matrix) {
	for i := range in {
		inout[i] = times(in[i], inout[i])
	}
}

// matrices returns the elements of count matrices.
func matrices(rank, count int) []uint64 {
	s := make([]uint64, 4*count)
	for i := range s {
		s[i] = uint64(2*rank + i%11 + 1)
	}
	return s
}

// product returns the products of the matrices of ranks 0 to last.
func product(last, count int) []uint64 { return fold(last, count, multiply, matrices) }

// wholeItems multiplies matrices of four elements with all reductions of elements.
func wholeItems(w *mpj.World) error {
	for _, count := range append(itemCounts, manyItems) {
		if err := wholeItemsOnce(w.Comm, count); err != nil {
			return fmt.Errorf("%d items: %w", count, err)
		}
	}
	return nil
}

func wholeItemsOnce(c *mpj.Comm, count int) error {
	op, n, rank, length := mpj.Items(4, multiply), c.Size(), c.Rank(), 4*count
	me, total, wide := matrices(rank, count), product(n-1, count), matrices(rank, count*n)
	atRoot, everywhere, prefix, before := make([]uint64, length), make([]uint64, length), make([]uint64, length), make([]uint64, length)
	part, uneven, counts := make([]uint64, length), []uint64(nil), make([]int, n)
	counts[n-1] = 4 * count * n
	if rank == n-1 {
		uneven = make([]uint64, counts[rank])
	}
	err := cmp.Or(mpj.Reduce(c, me, atRoot, op, n-1), mpj.Allreduce(c, me, everywhere, op), mpj.Scan(c, me, prefix, op), mpj.Exscan(c, me, before, op),
		mpj.ReduceScatterBlock(c, wide, part, op), mpj.ReduceScatter(c, wide, uneven, counts, op))
	if err != nil {
		return err
	}
	all := product(n-1, count*n)
	if rank == n-1 {
		err = cmp.Or(same("Reduce", atRoot, total), same("ReduceScatter", uneven, all))
	}
	if rank > 0 {
		err = cmp.Or(err, same("Exscan", before, product(rank-1, count)))
	}
	return cmp.Or(err, same("Allreduce", everywhere, total), same("Scan", prefix, product(rank, count)),
		same("ReduceScatterBlock", part, all[rank*length:][:length]),
		fails("half an item", mpj.Allreduce(c, nil, make([]uint64, length+2), op), mpj.ErrCount))
}

// A body is a struct with padding, and with fields that the datatypes of the tests omit.
type body struct {
	Kind   uint8
	M      matrix
	Serial uint32
}

// An itemKind is a datatype whose items contain one matrix each, with the operation that multiplies
// the matrices.
type itemKind struct {
	name string
	op   mpj.TypedOp
	// of returns items that contain the matrices m, and a function that returns their matrices, or nil
	// if other data of the buffer has changed.
	of func(m []uint64) (mpj.Typed, func() []uint64)
}

func itemKinds() []itemKind {
	four, field := mpj.TypeOf[uint64]().Contiguous(4), mpj.TypeStructOf[body]("M")
	contiguous := func(m []uint64) (mpj.Typed, func() []uint64) {
		return four.At(m, 0, len(m)/4), func() []uint64 { return m }
	}
	return []itemKind{ // no operation is a named function, because otherLayouts combines different functions
		{"arrays", mpj.OpOf(func(in, inout []matrix) { multiplyMatrices(in, inout) }), contiguous},
		{"groups of numbers", mpj.OpOf(mpj.Items(4, multiply)), contiguous},
		{"fields of structs", mpj.OpOf(func(in, inout []body) { multiplyBodies(in, inout) }), func(m []uint64) (mpj.Typed, func() []uint64) {
			all := bodies(m)
			return field.At(all, 0, len(all)), func() []uint64 { return matricesOf(all) }
		}},
	}
}

// multiplyBodies multiplies the matrices, and also writes the other fields.
func multiplyBodies(in, inout []body) {
	for i := range in {
		inout[i] = body{Kind: 77, M: times(in[i].M, inout[i].M), Serial: 78}
	}
}

func bodies(m []uint64) []body {
	all := make([]body, len(m)/4)
	for i := range all {
		all[i] = body{Kind: 1, M: matrix(m[4*i:]), Serial: uint32(i)}
	}
	return all
}

// matricesOf is the inverse of bodies. It returns nil if the other fields have changed.
func matricesOf(all []body) []uint64 {
	m := make([]uint64, 0, 4*len(all))
	for i, b := range all {
		if b.Kind != 1 || b.Serial != uint32(i) {
			return nil
		}
		m = append(m, b.M[:]...)
	}
	return m
}

// everyKind runs check for all kinds of items and the given counts.
func everyKind(c *mpj.Comm, counts []int, check func(c *mpj.Comm, k itemKind, count int) error) error {
	for _, k := range itemKinds() {
		for _, count := range counts {
			if err := check(c, k, count); err != nil {
				return fmt.Errorf("%d items, %s: %w", count, k.name, err)
			}
		}
	}
	return nil
}

func typedReductions(w *mpj.World) error {
	return everyKind(w.Comm, itemCounts, func(c *mpj.Comm, k itemKind, count int) error {
		r := newTypedResults(c, k, count)
		return cmp.Or(
			mpj.ReduceTyped(c, r.send, r.recv[0], k.op, r.root), mpj.AllreduceTyped(c, r.send, r.recv[1], k.op),
			mpj.ScanTyped(c, r.send, r.recv[2], k.op), mpj.ExscanTyped(c, r.send, r.recv[3], k.op),
			mpj.ReduceScatterBlockTyped(c, r.wide, r.recv[4], k.op), mpj.ReduceScatterTyped(c, r.wide, r.recv[5], r.counts, k.op),
			r.check(c))
	})
}

func typedReductionsStarted(w *mpj.World) error {
	return everyKind(w.Comm, []int{1, 514}, func(c *mpj.Comm, k itemKind, count int) error {
		r := newTypedResults(c, k, count)
		var started []*mpj.Request
		var failed error
		begin := func(r *mpj.Request, err error) { started, failed = append(started, r), cmp.Or(failed, err) }
		begin(mpj.IreduceTyped(c, r.send, r.recv[0], k.op, r.root))
		begin(mpj.IallreduceTyped(c, r.send, r.recv[1], k.op))
		begin(mpj.IscanTyped(c, r.send, r.recv[2], k.op))
		begin(mpj.IexscanTyped(c, r.send, r.recv[3], k.op))
		begin(mpj.IreduceScatterBlockTyped(c, r.wide, r.recv[4], k.op))
		begin(mpj.IreduceScatterTyped(c, r.wide, r.recv[5], r.counts, k.op))
		if failed != nil {
			return failed
		}
		_, err := mpj.Waitall(started...)
		return cmp.Or(err, r.check(c))
	})
}

// A typedResults contains the buffers of one call of each reduction of items.
type typedResults struct {
	count, root int
	counts      []int     // items of each rank in ReduceScatterTyped
	send, wide  mpj.Typed // wide has items for all ranks
	recv        [6]mpj.Typed
	results     [6]func() []uint64
}

func newTypedResults(c *mpj.Comm, k itemKind, count int) *typedResults {
	r := &typedResults{count: count, root: count % c.Size(), counts: make([]int, c.Size())}
	r.send, _ = k.of(matrices(c.Rank(), count))
	r.wide, _ = k.of(matrices(c.Rank(), count*c.Size()))
	for i := range r.counts {
		r.counts[i] = count
	}
	r.counts[0], r.counts[c.Size()-1] = r.counts[0]+r.counts[c.Size()-1]-count/2, count/2
	if c.Size() == 1 {
		r.counts[0] = count
	}
	for i := range r.recv {
		length := count
		if i == 5 {
			length = r.counts[c.Rank()]
		}
		r.recv[i], r.results[i] = k.of(make([]uint64, 4*length))
	}
	return r
}

// check compares the results with the definition of the reductions.
func (r *typedResults) check(c *mpj.Comm) error {
	n, rank, length := c.Size(), c.Rank(), 4*r.count
	total, all, none := product(n-1, r.count), product(n-1, r.count*n), make([]uint64, length)
	atRoot, before, from := none, none, 0
	if rank == r.root {
		atRoot = total
	}
	if rank > 0 {
		before = product(rank-1, r.count)
	}
	for _, k := range r.counts[:rank] {
		from += 4 * k
	}
	return cmp.Or(same("Reduce", r.results[0](), atRoot), same("Allreduce", r.results[1](), total),
		same("Scan", r.results[2](), product(rank, r.count)), same("Exscan", r.results[3](), before),
		same("ReduceScatterBlock", r.results[4](), all[rank*length:][:length]),
		same("ReduceScatter", r.results[5](), all[from:][:4*r.counts[rank]]))
}

func typedInPlace(w *mpj.World) error {
	return everyKind(w.Comm, []int{0, 3, 513}, func(c *mpj.Comm, k itemKind, count int) error {
		n, rank, inPlace := c.Size(), c.Rank(), mpj.Typed{}
		atRoot, reduced := k.of(matrices(rank, count))
		everywhere, allReduced := k.of(matrices(rank, count))
		prefix, scanned := k.of(matrices(rank, count))
		wide, scattered := k.of(matrices(rank, count*n))
		send, recv, want := inPlace, atRoot, product(n-1, count)
		if rank > 0 {
			send, recv, want = atRoot, inPlace, matrices(rank, count)
		}
		err := cmp.Or(mpj.ReduceTyped(c, send, recv, k.op, 0), mpj.AllreduceTyped(c, inPlace, everywhere, k.op),
			mpj.ScanTyped(c, inPlace, prefix, k.op), mpj.ReduceScatterBlockTyped(c, inPlace, wide, k.op),
			same("Reduce", reduced(), want), same("Allreduce", allReduced(), product(n-1, count)), same("Scan", scanned(), product(rank, count)))
		if err != nil {
			return err
		}
		part := scattered()
		return same("ReduceScatterBlock", part[:min(4*count, len(part))], product(n-1, count*n)[4*rank*count:][:4*count])
	})
}

// gapsUnchanged reduces two fields of a struct, in the reverse order, beside which there is padding.
func gapsUnchanged(w *mpj.World) error {
	fields := mpj.TypeStructOf[particle]("Charge", "Kind")
	sum := mpj.OpOf(func(in, inout []particle) {
		for i, p := range in {
			inout[i] = particle{p.Kind + inout[i].Kind, [3]float64{1, 2, 3}, p.Charge + inout[i].Charge}
		}
	})
	mine := []particle{{1, [3]float64{4, 5, 6}, int16(w.Rank())}, {2, [3]float64{7, 8, 9}, -3}}
	total := []particle{{9, [3]float64{-1, -2, -3}, 9}, {9, [3]float64{-4, -5, -6}, 9}}
	n := w.Size()
	err := mpj.AllreduceTyped(w.Comm, fields.At(mine, 0, 2), fields.At(total, 0, 2), sum)
	return cmp.Or(err, same("sum", total, []particle{
		{int8(n), [3]float64{-1, -2, -3}, int16(n * (n - 1) / 2)}, {int8(2 * n), [3]float64{-4, -5, -6}, int16(-3 * n)},
	}))
}

// otherLayouts gives the ranks datatypes with the same sequence of elements and other gaps.
func otherLayouts(w *mpj.World) error {
	for _, count := range itemCounts {
		kinds := itemKinds()
		k := kinds[w.Rank()%len(kinds)]
		send, _ := k.of(matrices(w.Rank(), count))
		recv, result := k.of(make([]uint64, 4*count))
		err := mpj.AllreduceTyped(w.Comm, send, recv, k.op)
		if err := cmp.Or(err, same("product", result(), product(w.Size()-1, count))); err != nil {
			return fmt.Errorf("%d items: %w", count, err)
		}
	}
	return nil
}

// noItems reduces items of a datatype without data.
func noItems(w *mpj.World) error {
	all := bodies(matrices(w.Rank(), 3))
	nothing := mpj.TypeStruct[body]().Resized(0, int(unsafe.Sizeof(body{}))).At(all, 0, 3)
	op := mpj.OpOf(multiplyBodies)
	return cmp.Or(mpj.AllreduceTyped(w.Comm, mpj.Typed{}, nothing, op), mpj.ReduceTyped(w.Comm, nothing, nothing, op, 0),
		same("items", all, bodies(matrices(w.Rank(), 3))))
}

func wrongItems(w *mpj.World) error {
	c, n, m := w.Comm, w.Size(), make([]uint64, 32)
	four, product := mpj.TypeOf[uint64]().Contiguous(4), mpj.OpOf(multiplyMatrices)
	one, two, inPlace := four.At(m, 0, 1), four.At(m, 0, 2), mpj.Typed{}
	gap := mpj.TypeOf[uint64]().Vector(2, 2, 4).Resized(0, 32)
	pointers := mpj.OpOf(func(in, inout []*int) {})
	return refused(w, []misuse{
		{"part of an item", mpj.Allreduce(c, nil, m[:6], mpj.Items(4, multiply)), mpj.ErrCount},
		{"items of no elements", mpj.Allreduce(c, nil, m[:4], mpj.Items(0, multiply)), mpj.ErrOp},
		{"no items of no elements", mpj.ReduceScatterBlock(c, nil, m[:0], mpj.Items(0, multiply)), mpj.ErrOp},
		{"items of a negative number of elements", mpj.Scan(c, nil, m[:4], mpj.Items(-4, multiply)), mpj.ErrOp},
		{"zero operation", mpj.AllreduceTyped(c, inPlace, one, mpj.TypedOp{}), mpj.ErrOp},
		{"nil operation", mpj.AllreduceTyped(c, inPlace, one, mpj.OpOf[matrix](nil)), mpj.ErrOp},
		{"operation on pointers", mpj.AllreduceTyped(c, inPlace, one, pointers), mpj.ErrOp},
		{"operation on other items", mpj.AllreduceTyped(c, inPlace, one, mpj.OpOf(mpj.Sum[uint64])), mpj.ErrOp},
		{"operation on other items, of which there are none", mpj.ScanTyped(c, inPlace, four.At(m, 0, 0), mpj.OpOf(mpj.Sum[uint64])), mpj.ErrOp},
		{"items that overlap", mpj.AllreduceTyped(c, inPlace, gap.At(m, 0, 1), product), mpj.ErrOp},
		{"no buffers", mpj.AllreduceTyped(c, inPlace, inPlace, product), mpj.ErrType},
		{"unequal counts", mpj.AllreduceTyped(c, one, two, product), mpj.ErrBuffer},
		{"counts that do not add up", mpj.ReduceScatterTyped(c, two, one, make([]int, n), product), mpj.ErrCount},
		{"root", mpj.ReduceTyped(c, one, two, product, n), mpj.ErrRoot},
	})
}

func typedReduceLocal(*mpj.World) error {
	for _, k := range itemKinds() {
		in, _ := k.of(matrices(0, 5))
		inout, result := k.of(matrices(1, 5))
		two, _ := k.of(matrices(0, 2))
		err := cmp.Or(mpj.ReduceLocalTyped(in, inout, k.op), same(k.name, result(), product(1, 5)),
			fails("unequal counts", mpj.ReduceLocalTyped(two, inout, k.op), mpj.ErrBuffer))
		if err != nil {
			return err
		}
	}
	return nil
}
