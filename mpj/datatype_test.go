package mpj

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// A particle has gaps that are not data, and an unexported field.
type particle struct {
	Charge   int8
	Position [3]float64
	id       uint16
	Velocity struct{ X, Y, Z float32 }
}

func TestExtentsOfDatatypes(t *testing.T) {
	double := TypeOf[float64]()
	cases := []struct {
		name                      string
		size, lb, extent, low, at int
		got                       func() [5]int
	}{
		{"element", 8, 0, 8, 0, 8, describe(double)},
		{"column", 32, 0, 8 * 31, 0, 8 * 31, describe(double.Vector(4, 1, 10))},
		{"column for columns", 32, 0, 8, 0, 8 * 31, describe(double.Vector(4, 1, 10).Resized(0, 8))},
		{"triangle", 48, 0, 96, 0, 96, describe(double.Indexed([]int{3, 2, 1}, []int{0, 5, 11}))},
		{"pairs", 48, 16, 80, 16, 80, describe(double.IndexedBlock(2, []int{2, 6, 10}))},
		{"displacements in bytes", 16, 0, 20, 0, 20, describe(double.HindexedBlock(1, []int{0, 12}))},
		{"struct", 39, 0, int(unsafe.Sizeof(particle{})), 0, 48, describe(TypeStructOf[particle]())},
		{"fields", 36, 0, int(unsafe.Sizeof(particle{})), 8, 40, describe(TypeStructOf[particle]("Position", "Velocity"))},
		{"halo", 24, 0, 8 * 25, 48, 88, describe(double.Subarray([]int{5, 5}, []int{3, 1}, []int{1, 1}))},
		{"explicit offsets", 9, 0, 16, 0, 9, describe(TypeStruct[particle](FieldOf(1, 0, double), FieldOf(1, 8, TypeOf[byte]())))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, want := c.got(), [5]int{c.size, c.lb, c.extent, c.low, c.at}; got != want {
				t.Errorf("size, lb, extent, true lb, true extent: got %v, want %v", got, want)
			}
		})
	}
}

func describe[T any](d Datatype[T]) func() [5]int {
	return func() [5]int {
		lb, extent := d.Extent()
		low, long := d.TrueExtent()
		return [5]int{d.Size(), lb, extent, low, long}
	}
}

// TestWrongDatatypesAreNamed checks that an invalid datatype or an access outside memory is an error
// of the call, before a message is sent, and that no rank waits for the message.
func TestWrongDatatypesAreNamed(t *testing.T) {
	double, matrix := TypeOf[float64](), make([]float64, 12)
	type withPointer struct {
		N    int
		Next *int
	}
	cases := []struct {
		x     Typed
		class Class
		says  string
	}{
		{double.Vector(-1, 1, 1).At(matrix, 0, 1), ErrType, "invalid datatype: Vector: negative value: -1 blocks"},
		{double.Vector(2, 1, 1<<62).Contiguous(2).At(matrix, 0, 1), ErrType, "Vector"},
		{double.Indexed([]int{1}, []int{1, 2}).At(matrix, 0, 1), ErrType, "1 block lengths and 2"},
		{double.Contiguous(13).At(matrix, 0, 1), ErrBuffer, "touch bytes 0 to 103 of a buffer of 96"},
		{double.At(matrix, 10, 3), ErrBuffer, "touch bytes 80 to 103"},
		{double.At(matrix, 13, 0), ErrBuffer, "offset 13 in a buffer of 12"},
		{double.At(matrix, 0, -1), ErrBuffer, "-1 items"},
		{double.Hindexed([]int{1}, []int{-8}).At(matrix, 0, 1), ErrBuffer, "touch bytes -8 to -1"},
		{TypeStructOf[withPointer]().At(nil, 0, 0), ErrType, "field Next of mpj.withPointer: unsupported type *int"},
		{TypeStructOf[particle]("Mass").At(nil, 0, 0), ErrType, "no field Mass"},
		{TypeStructOf[float64]().At(nil, 0, 0), ErrType, "float64 is not a struct"},
		{TypeStruct[bool](FieldOf(1, 0, TypeOf[byte]())).At(nil, 0, 0), ErrType, "unsupported type bool"},
		{Datatype[string]{}.At(nil, 0, 0), ErrType, "TypeOf"},
		{Typed{}, ErrType, "zero Typed"},
	}
	err := RunLocal(context.Background(), 2, func(w *World) error {
		for _, c := range cases {
			for op, err := range map[string]error{
				"SendTyped":   SendTyped(w.Comm, c.x, 1, 0),
				"RecvTyped":   last(RecvTyped(w.Comm, c.x, 1, 0)),
				"UnpackTyped": last(UnpackTyped(nil, c.x)),
			} {
				if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), op) {
					t.Errorf("got %v, want %q of %s that contains %q", err, c.class, op, c.says)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// last returns the error of a call with two results.
func last[V any](_ V, err error) error { return err }

// TestDatatypesOfEqualSignatureMatch checks that a message does not depend on the datatype: a
// column arrives as a row.
func TestDatatypesOfEqualSignatureMatch(t *testing.T) {
	const rows, columns = 3, 4
	double := TypeOf[float64]()
	column := double.Vector(rows, 1, columns)
	inEveryShape(t, func(w *World) error {
		matrix := make([]float64, rows*columns)
		for i := range matrix {
			matrix[i] = float64(100*w.Rank() + i)
		}
		right, left := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		r, err := IrecvTyped(w.Comm, column.At(matrix, 0, 1), left, 0)
		if err != nil {
			return err
		}
		if err := SendTyped(w.Comm, column.At(matrix, columns-1, 1), right, 0); err != nil {
			return err
		}
		s, err := r.Wait()
		from := float64(100 * left)
		got := []float64{matrix[0], matrix[4], matrix[8]}
		if err := first(err, want("column", got, []float64{from + 3, from + 7, from + 11})); err != nil {
			return err
		}
		if n, m := column.Count(s), column.Elements(s); n != 1 || m != rows || Count[float64](s) != rows {
			return fmt.Errorf("%v is %d columns, %d elements", s, n, m)
		}
		row := make([]float64, rows)
		send, err := IsendTyped(w.Comm, column.At(matrix, 1, 1), right, 1)
		if err != nil {
			return err
		}
		_, err = Recv(w.Comm, row, left, 1)
		_, sent := send.Wait()
		return first(err, sent, want("row", row, []float64{from + 1, from + 5, from + 9}))
	})
}

// TestColumnsAreSentInEveryMode checks that every send function for datatypes sends the same
// message.
func TestColumnsAreSentInEveryMode(t *testing.T) {
	const rows, columns = 3, 4
	column := TypeOf[int]().Vector(rows, 1, columns)
	inEveryShape(t, func(w *World) error {
		right, left := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		if err := w.BufferAttach(2 * (column.Size() + BsendOverhead)); err != nil {
			return err
		}
		sends := map[string]func(x Typed, tag int) error{
			"BsendTyped":  func(x Typed, tag int) error { return BsendTyped(w.Comm, x, right, tag) },
			"RsendTyped":  func(x Typed, tag int) error { return RsendTyped(w.Comm, x, right, tag) },
			"IbsendTyped": func(x Typed, tag int) error { return ended(IbsendTyped(w.Comm, x, right, tag)) },
			"IrsendTyped": func(x Typed, tag int) error { return ended(IrsendTyped(w.Comm, x, right, tag)) },
		}
		for tag, name := range slices.Sorted(maps.Keys(sends)) {
			matrix := make([]int, rows*columns)
			matrix[1], matrix[5], matrix[9] = w.Rank(), tag, 7
			if err := sends[name](column.At(matrix, 1, 1), tag); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			m, _, err := Mprobe(w.Comm, left, tag)
			if err != nil {
				return err
			}
			if err := ended(ImrecvTyped(m, column.At(matrix, 2, 1))); err != nil {
				return err
			}
			if err := want(name, []int{matrix[2], matrix[6], matrix[10]}, []int{left, tag, 7}); err != nil {
				return err
			}
		}
		matrix := []int{w.Rank(), 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}
		if _, err := SendrecvReplaceTyped(w.Comm, column.At(matrix, 0, 1), right, 9, left, 9); err != nil {
			return err
		}
		if err := want("SendrecvReplaceTyped", []int{matrix[0], matrix[4], matrix[8]}, []int{left, 1, 2}); err != nil {
			return err
		}
		root := w.Size() - 1
		if w.Rank() == root {
			matrix = []int{4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0}
		}
		err := BcastTyped(w.Comm, column.At(matrix, 0, 1), root)
		_, detached := w.BufferDetach()
		return first(err, detached, want("BcastTyped", matrix, []int{4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0}))
	})
}

// ended waits for the request that a call has returned.
func ended(r *Request, err error) error {
	if err != nil {
		return err
	}
	_, err = r.Wait()
	return err
}

func TestMessageMayFillADatatypeInPart(t *testing.T) {
	pair := TypeOf[int32]().Vector(2, 1, 2)
	err := RunLocal(context.Background(), 2, func(w *World) error {
		if w.Rank() == 0 {
			return Send(w.Comm, []int32{1, 2, 3}, 1, 0)
		}
		got := make([]int32, 8)
		s, err := RecvTyped(w.Comm, pair.Resized(0, 16).At(got, 0, 2), 0, 0)
		if n := pair.Elements(s); n != 3 || pair.Count(s) != Undefined {
			t.Errorf("%v has %d elements, %d items", s, n, pair.Count(s))
		}
		return first(err, want("parts", got, []int32{1, 0, 2, 0, 3, 0, 0, 0}))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStructsAreSentWithoutPadding(t *testing.T) {
	whole, moved := TypeStructOf[particle](), TypeStructOf[particle]("Position")
	inEveryShape(t, func(w *World) error {
		ps := make([]particle, 5)
		right, left := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		for i := range ps {
			ps[i].Charge, ps[i].id, ps[i].Velocity.Z = int8(w.Rank()), uint16(i), 0.5
			ps[i].Position[2] = float64(i)
		}
		got := make([]particle, 7)
		r, err := IrecvTyped(w.Comm, whole.At(got, 1, 6), left, 0)
		if err != nil {
			return err
		}
		if err := SendTyped(w.Comm, whole.At(ps, 0, 5), right, 0); err != nil {
			return err
		}
		s, err := r.Wait()
		if err != nil || whole.Count(s) != 5 || whole.Elements(s) != 40 {
			return fmt.Errorf("%v: %d particles, %d numbers: %w", s, whole.Count(s), whole.Elements(s), err)
		}
		for i := range ps {
			ps[i].Charge = int8(left)
		}
		if err := want("particles", got[1:6], ps); err != nil {
			return err
		}
		ps[0].Position[1] = 8
		b, err := PackTyped(nil, moved.At(ps, 0, 1))
		if err != nil || len(b) != 24 {
			return fmt.Errorf("PackTyped returned %v: %w", b, err)
		}
		_, err = UnpackTyped(b, moved.At(got, 6, 1))
		return first(err, want("moved", got[6:], []particle{{Position: ps[0].Position}}))
	})
}

func TestPackedMessagesAreMadeOfParts(t *testing.T) {
	every2nd := TypeOf[uint16]().Vector(3, 1, 2)
	numbers := []uint16{1, 2, 3, 4, 5, 6}
	b := Pack([]byte("head"), []int{3})
	b, err := PackTyped(b, every2nd.At(numbers, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	b = Pack(b, []complex128{1i})
	if n := 4 + PackSize[int](1) + every2nd.Size() + PackSize[complex128](1); len(b) != n {
		t.Errorf("the packed values have %d bytes, want %d", len(b), n)
	}
	head, count, odd, last := make([]byte, 4), make([]int, 1), make([]uint16, 6), make([]complex128, 1)
	rest, err := Unpack(b, head)
	rest, err1 := Unpack(rest, count)
	rest, err2 := UnpackTyped(rest, every2nd.At(odd, 1, 1))
	rest, err3 := Unpack(rest, last)
	if err := first(err, err1, err2, err3); err != nil || len(rest) > 0 {
		t.Fatalf("got %v with %d bytes left", err, len(rest))
	}
	if string(head) != "head" || count[0] != 3 || !slices.Equal(odd, []uint16{0, 1, 0, 3, 0, 5}) || last[0] != 1i {
		t.Errorf("the unpacked values are %q, %v, %v, %v", head, count, odd, last)
	}
	if _, err := Unpack(rest, count); !errors.Is(err, ErrTruncate) {
		t.Errorf("unpack of no bytes: got %v", err)
	}
}

// FuzzUnpack checks that Unpack fills a part entirely or not at all, for arbitrary bytes.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add(bytes.Repeat([]byte{1}, 39), uint8(1))
	f.Add(bytes.Repeat([]byte{7}, 200), uint8(3))
	whole := TypeStructOf[particle]()
	f.Fuzz(func(t *testing.T, b []byte, count uint8) {
		ps := make([]particle, int(count)+1)
		rest, err := UnpackTyped(b, whole.At(ps, 1, int(count)))
		if fits := len(b) >= int(count)*whole.Size(); fits != (err == nil) {
			t.Fatalf("%d bytes for %d particles: got %v", len(b), count, err)
		}
		if err != nil {
			if len(rest) != len(b) || slices.ContainsFunc(ps, func(p particle) bool { return p != particle{} }) {
				t.Errorf("a failed Unpack has an effect: %v, %d bytes left", err, len(rest))
			}
			return
		}
		again, err := PackTyped(nil, whole.At(ps, 1, int(count)))
		if err != nil || !bytes.Equal(append(again, rest...), b) {
			t.Errorf("the unpacked values pack to other bytes: %v", err)
		}
	})
}
