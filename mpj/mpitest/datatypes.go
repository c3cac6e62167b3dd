package mpitest

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Datatypes, and pack and unpack (MPI 4.0, chapter 5).
var datatypes = []Test{
	{"a layout sends its elements in order", 1, true, layouts},
	{"layouts of equal signatures match", 1, true, signatures},
	{"size, extent and true extent are as defined", 1, true, extents},
	{"resized changes the distance of items", 1, true, resized},
	{"resized parts determine the bounds of a datatype", 1, true, marked},
	{"all calls take negative extents", 1, true, backwards},
	{"structs are sent without padding", 1, true, structs},
	{"a subarray is a part of a matrix", 1, true, subarray},
	{"get-elements counts the last item in part", 1, true, elements},
	{"persistent requests take layouts", 1, true, typedPersistent},
	{"unpack restores what pack packed", 1, true, pack},
	{"wrong datatypes are errors where they are used", 1, true, wrongTypes},
}

// A layoutCase is a datatype over int32 and the positions of its elements.
type layoutCase struct {
	name   string
	of     mpj.Datatype[int32]
	places []int
}

func layoutCases() []layoutCase {
	one := mpj.TypeOf[int32]()
	return []layoutCase{
		{"basic", one, []int{0}},
		{"contiguous", one.Contiguous(3), []int{0, 1, 2}},
		{"empty", one.Contiguous(0), nil},
		{"vector", one.Vector(3, 2, 4), []int{0, 1, 4, 5, 8, 9}},
		{"vector backwards", one.Vector(3, 1, -2), []int{0, -2, -4}},
		{"hvector", one.Hvector(2, 1, 20), []int{0, 5}},
		{"indexed", one.Indexed([]int{2, 0, 1}, []int{5, 1, 0}), []int{5, 6, 0}},
		{"hindexed", one.Hindexed([]int{1, 2}, []int{8, 16}), []int{2, 4, 5}},
		{"indexed block", one.IndexedBlock(2, []int{6, 1}), []int{6, 7, 1, 2}},
		{"negative extent", one.Resized(0, -8), []int{0}},
		{"contiguous of a negative extent", one.Resized(0, -8).Contiguous(3), []int{0, -2, -4}},
		{"vector of vectors", one.Vector(2, 1, 3).Vector(2, 1, 2), []int{0, 3, 8, 11}},
	}
}

// origin is the position of the first item of a layoutCase in its slice, and room is the length of
// the slice. Two items fit, forward or backward.
const origin, room = 30, 80

// placed returns the positions of two consecutive items.
func (c layoutCase) placed() []int {
	_, extent := c.of.Extent()
	var all []int
	for item := range 2 {
		for _, p := range c.places {
			all = append(all, origin+p+item*extent/4)
		}
	}
	return all
}

// layouts sends each datatype to the neighbour, which receives plain elements, and then sends plain
// elements, which the neighbour receives with the datatype.
func layouts(w *mpj.World) error {
	for _, c := range layoutCases() {
		if err := cmp.Or(c.of.Err(), c.gathered(w.Comm), c.scattered(w.Comm)); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (c layoutCase) gathered(comm *mpj.Comm) error {
	var want []int32
	for _, p := range c.placed() {
		want = append(want, int32(1000+p))
	}
	got := make([]int32, len(want)+1)
	r, err := mpj.Irecv(comm, got, left(comm), 0)
	if err := cmp.Or(err, mpj.SendTyped(comm, c.of.At(numbers[int32](1000, room), origin, 2), right(comm), 0)); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, same("sent", got[:mpj.Count[int32](s)], want))
}

func (c layoutCase) scattered(comm *mpj.Comm) error {
	places := c.placed()
	got, want := make([]int32, room), make([]int32, room)
	for i, p := range places {
		want[p] = int32(1 + i)
	}
	x := c.of.At(got, origin, 2)
	r, err := mpj.IrecvTyped(comm, x, left(comm), 0)
	if err := cmp.Or(err, mpj.Send(comm, numbers[int32](1, len(places)), right(comm), 0)); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, same("received", got, want), equal("size", s.Size, x.Size()))
}

// signatures tests section 3.3.1: only the sequence of basic types must match.
func signatures(w *mpj.World) error {
	rows := mpj.TypeOf[float64]().Vector(4, 4, 6)    // 4 rows of 4 in a 4 x 6 matrix
	columns := mpj.TypeOf[float64]().Vector(4, 1, 4) // one column of a 4 x 4 matrix
	transposed := columns.Resized(0, 8)              // the next column is the next item
	from, to := numbers[float64](0, 24), make([]float64, 16)
	_, err := mpj.SendrecvTyped(w.Comm, rows.At(from, 0, 1), right(w.Comm), 0, transposed.At(to, 0, 4), left(w.Comm), 0)
	if err != nil {
		return err
	}
	for i := range 16 {
		if err := equal("transposed", to[i%4*4+i/4], from[i/4*6+i%4]); err != nil {
			return err
		}
	}
	return nil
}

func extents(*mpj.World) error {
	for _, c := range []struct {
		name                                 string
		of                                   mpj.Datatype[int32]
		size, lb, extent, trueLB, trueExtent int
	}{
		{"basic", mpj.TypeOf[int32](), 4, 0, 4, 0, 4},
		{"contiguous", mpj.TypeOf[int32]().Contiguous(5), 20, 0, 20, 0, 20},
		{"vector", mpj.TypeOf[int32]().Vector(2, 1, 3), 8, 0, 16, 0, 16},
		{"indexed", mpj.TypeOf[int32]().Indexed([]int{1, 1}, []int{2, 4}), 8, 8, 12, 8, 12},
		{"resized", mpj.TypeOf[int32]().Vector(2, 1, 3).Resized(-4, 40), 8, -4, 40, 0, 16},
	} {
		lb, extent := c.of.Extent()
		trueLB, trueExtent := c.of.TrueExtent()
		got := []int{c.of.Size(), lb, extent, trueLB, trueExtent}
		if err := same(c.name, got, []int{c.size, c.lb, c.extent, c.trueLB, c.trueExtent}); err != nil {
			return err
		}
	}
	return nil
}

func resized(w *mpj.World) error {
	every3rd := mpj.TypeOf[int32]().Resized(0, 12)
	got := make([]int32, 4)
	_, err := mpj.SendrecvTyped(w.Comm, every3rd.At(numbers[int32](0, 12), 0, 4), right(w.Comm), 0,
		mpj.TypeOf[int32]().At(got, 0, 4), left(w.Comm), 0)
	return cmp.Or(err, same("elements", got, []int32{0, 3, 6, 9}))
}

// marked tests section 5.1.6: if a part has explicit bounds, parts without do not count.
func marked(*mpj.World) error {
	one := mpj.TypeOf[int32]()
	for _, c := range []struct {
		name       string
		of         mpj.Datatype[int32]
		lb, extent int
	}{
		{"a resized part and another", mpj.TypeStruct[int32](mpj.FieldOf(1, 0, one.Resized(-4, 12)), mpj.FieldOf(2, 20, one)), -4, 12},
		{"two resized parts", mpj.TypeStruct[int32](mpj.FieldOf(1, 0, one.Resized(0, 8)), mpj.FieldOf(1, 12, one.Resized(-8, 4))), 0, 8},
		{"a resized part backwards", mpj.TypeStruct[int32](mpj.FieldOf(1, 8, one), mpj.FieldOf(1, 0, one.Resized(0, -8))), 0, -8},
		{"no resized part", mpj.TypeStruct[int32](mpj.FieldOf(1, 4, one), mpj.FieldOf(2, 20, one)), 4, 24},
		{"a part that was resized again", one.Resized(-4, 40).Resized(0, 4).Contiguous(2), 0, 8},
	} {
		lb, extent := c.of.Extent()
		if err := same(c.name, []int{lb, extent}, []int{c.lb, c.extent}); err != nil {
			return err
		}
	}
	return nil
}

// backwards sends the items of a list in descending order, and receives them in the same order, with
// every call that takes layouts. So the list arrives as it is.
func backwards(w *mpj.World) error {
	down := mpj.TypeOf[int32]().Resized(0, -4)
	const n = 5
	from := numbers[int32](7, n)
	to, plain := make([]int32, n), make([]int32, n)
	out, in := down.At(from, n-1, n), down.At(to, n-1, n)
	c, dest, source := w.Comm, right(w.Comm), left(w.Comm)
	arrived := func(name string, got, want []int32, err error) error {
		if err := cmp.Or(err, same(name, got, want)); err != nil {
			return err
		}
		clear(got)
		return nil
	}
	reversed := []int32{11, 10, 9, 8, 7}
	_, err := mpj.SendrecvTyped(c, out, dest, 0, mpj.TypeOf[int32]().At(plain, 0, n), source, 0)
	if err := arrived("SendrecvTyped to elements", plain, reversed, err); err != nil {
		return err
	}
	_, err = mpj.SendrecvTyped(c, out, dest, 0, in, source, 0)
	if err := arrived("SendrecvTyped", to, from, err); err != nil {
		return err
	}
	copy(to, from)
	_, err = mpj.SendrecvReplaceTyped(c, in, dest, 0, source, 0)
	if err := arrived("SendrecvReplaceTyped", to, from, err); err != nil {
		return err
	}
	r1, err1 := mpj.RecvInitTyped(c, in, source, 0)
	r2, err2 := mpj.SendInitTyped(c, out, dest, 0)
	if err := cmp.Or(err1, err2, mpj.Startall(r1, r2)); err != nil {
		return err
	}
	_, err = mpj.Waitall(r1, r2)
	if err := arrived("persistent", to, from, err); err != nil {
		return err
	}
	if w.Rank() == 0 {
		copy(to, from)
	}
	if err := arrived("BcastTyped", to, from, mpj.BcastTyped(c, in, 0)); err != nil {
		return err
	}
	packed, err := mpj.PackTyped(nil, out)
	if err != nil {
		return err
	}
	rest, err1 := mpj.UnpackTyped(packed, in)
	_, err2 = mpj.Unpack(packed, plain)
	return cmp.Or(arrived("UnpackTyped", to, from, err1), arrived("Unpack", plain, reversed, err2), equal("bytes left", len(rest), 0))
}

// A particle has padding after its field kind.
type particle struct {
	Kind     int8
	Position [3]float64
	Charge   int16
}

func structs(w *mpj.World) error {
	whole, part := mpj.TypeStructOf[particle](), mpj.TypeStructOf[particle]("Charge", "Kind")
	byHand := mpj.TypeStruct[particle](
		mpj.FieldOf(1, int(unsafe.Offsetof(particle{}.Kind)), mpj.TypeOf[int8]()),
		mpj.FieldOf(3, int(unsafe.Offsetof(particle{}.Position)), mpj.TypeOf[float64]()),
		mpj.FieldOf(1, int(unsafe.Offsetof(particle{}.Charge)), mpj.TypeOf[int16]()),
	).Resized(0, int(unsafe.Sizeof(particle{})))
	sent := []particle{{1, [3]float64{1, 2, 3}, 4}, {-1, [3]float64{5, 6, 7}, -8}}
	got, some := make([]particle, 2), make([]particle, 2)
	_, err1 := mpj.SendrecvTyped(w.Comm, whole.At(sent, 0, 2), right(w.Comm), 0, byHand.At(got, 0, 2), left(w.Comm), 0)
	_, err2 := mpj.SendrecvTyped(w.Comm, part.At(sent, 0, 2), right(w.Comm), 0, part.At(some, 0, 2), left(w.Comm), 0)
	return cmp.Or(err1, err2, same("whole", got, sent), same("part", some, []particle{{Kind: 1, Charge: 4}, {Kind: -1, Charge: -8}}),
		equal("size", whole.Size(), 1+24+2), equal("size of the part", part.Size(), 3))
}

func subarray(w *mpj.World) error {
	part := mpj.TypeOf[int]().Subarray([]int{4, 5}, []int{2, 3}, []int{1, 2})
	got := make([]int, 6)
	_, err := mpj.SendrecvTyped(w.Comm, part.At(numbers[int](0, 20), 0, 1), right(w.Comm), 0,
		mpj.TypeOf[int]().At(got, 0, 6), left(w.Comm), 0)
	return cmp.Or(part.Err(), err, same("part", got, []int{7, 8, 9, 12, 13, 14}))
}

// elements tests section 3.2.5 with a message that fills one item and a third of another.
func elements(w *mpj.World) error {
	triple := mpj.TypeOf[int16]().Vector(3, 1, 2)
	got := make([]int16, 20)
	r, err := mpj.IrecvTyped(w.Comm, triple.At(got, 0, 3), left(w.Comm), 0)
	if err := cmp.Or(err, mpj.Send(w.Comm, []int16{1, 2, 3, 4}, right(w.Comm), 0)); err != nil {
		return err
	}
	s, err := r.Wait()
	return cmp.Or(err, equal("count", triple.Count(s), mpj.Undefined), equal("elements", triple.Elements(s), 4),
		same("received", got[:8], []int16{1, 0, 2, 0, 3, 4, 0, 0}))
}

func typedPersistent(w *mpj.World) error {
	column := mpj.TypeOf[int]().Vector(3, 1, 3)
	from, to := make([]int, 9), make([]int, 9)
	out, err1 := mpj.SendInitTyped(w.Comm, column.At(from, 1, 1), right(w.Comm), 0)
	in, err2 := mpj.RecvInitTyped(w.Comm, column.At(to, 2, 1), left(w.Comm), 0)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	for round := range 3 {
		copy(from, numbers[int](10*round, 9))
		if err := mpj.Startall(in, out); err != nil {
			return err
		}
		_, err := mpj.Waitall(in, out)
		want := []int{0, 0, 10*round + 1, 0, 0, 10*round + 4, 0, 0, 10*round + 7}
		if err := cmp.Or(err, same("column", to, want)); err != nil {
			return err
		}
	}
	return nil
}

// pack tests section 5.2, and sends the packed data as one message.
func pack(w *mpj.World) error {
	b := mpj.Pack(nil, []int{w.Rank(), 3})
	b, err := mpj.PackTyped(b, mpj.TypeOf[float32]().Vector(3, 1, 2).At(numbers[float32](0, 6), 0, 1))
	if err := cmp.Or(err, equal("size", len(b), mpj.PackSize[int](2)+mpj.PackSize[float32](3))); err != nil {
		return err
	}
	got := make([]byte, len(b))
	if _, err := mpj.Sendrecv(w.Comm, b, right(w.Comm), 0, got, left(w.Comm), 0); err != nil {
		return err
	}
	head, body := make([]int, 2), make([]float32, 6)
	rest, err1 := mpj.Unpack(got, head)
	rest, err2 := mpj.UnpackTyped(rest, mpj.TypeOf[float32]().At(body, 0, 3))
	_, err3 := mpj.Unpack(rest, head)
	return cmp.Or(err1, err2, fails("Unpack of too few bytes", err3, mpj.ErrTruncate), same("head", head, []int{left(w.Comm), 3}),
		same("body", body, []float32{0, 2, 4, 0, 0, 0}))
}

func wrongTypes(w *mpj.World) error {
	buf := make([]int32, 10)
	var none mpj.Datatype[int32]
	negative := mpj.TypeOf[int32]().Contiguous(-1)
	uneven := mpj.TypeOf[int32]().Indexed([]int{1}, []int{1, 2})
	pointers := mpj.TypeStructOf[struct{ P *int }]()
	send := func(x mpj.Typed) error { return mpj.SendTyped(w.Comm, x, w.Rank(), 0) }
	return cmp.Or(
		fails("zero datatype", send(none.At(buf, 0, 1)), mpj.ErrType), fails("negative count", send(negative.At(buf, 0, 1)), mpj.ErrType),
		fails("uneven lists", send(uneven.At(buf, 0, 1)), mpj.ErrType), fails("pointers", pointers.Err(), mpj.ErrType),
		fails("beyond the slice", send(mpj.TypeOf[int32]().Vector(3, 1, 5).At(buf, 0, 1)), mpj.ErrBuffer),
		fails("before the slice", send(mpj.TypeOf[int32]().Vector(2, 1, -5).At(buf, 4, 1)), mpj.ErrBuffer),
		fails("zero typed", send(mpj.Typed{}), mpj.ErrType))
}
