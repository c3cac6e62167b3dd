package canonical

import (
	"bytes"
	"encoding/gob"
	"errors"
	"slices"
)

// Append appends the canonical gob message of v to b. It accepts the values that gob.Encoder
// accepts.
func Append(b []byte, v any) ([]byte, error) {
	var message bytes.Buffer
	if err := gob.NewEncoder(&message).Encode(v); err != nil {
		return b, err
	}
	return rewrite(b, message.Bytes())
}

// rewrite appends the canonical form of a gob stream of one value to b.
func rewrite(b, stream []byte) (_ []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			malformed, ok := r.(malformed)
			if !ok {
				panic(r)
			}
			err = errors.New(string(malformed))
		}
	}()
	r := reader{rest: stream, message: len(stream), types: make(map[int]definition)}
	root := r.typeSequence()
	w := writer{types: r.types, numbers: make(map[int]int)}
	w.use(root)
	value := []piece{{raw: r.rest}}
	if root == interfaceID || w.varies() {
		value = r.value(root)
		if len(r.rest) != 0 {
			panic(malformed("gob: more than one value"))
		}
		w.number(value)
	}
	for _, id := range w.order {
		w.scratch = w.definition(w.scratch[:0], id)
		b = appendUint(b, uint64(len(w.scratch)))
		b = append(b, w.scratch...)
	}
	head := appendInt(nil, w.id(root))
	b = appendUint(b, uint64(len(head)+w.size(value)))
	b = append(b, head...)
	return w.value(b, value), nil
}

// A piece is a part of an encoded value: bytes, optionally followed by the contents of an
// interface.
type piece struct {
	raw      []byte
	concrete int // type of the interface's contents, or 0 without an interface
	contents []piece
}

// compare orders encoded map entries. It ignores type numbers, because the names of concrete types,
// which are part of raw, identify the types.
func compare(x, y []piece) int {
	if len(x) == 1 && len(y) == 1 && x[0].concrete == 0 && y[0].concrete == 0 {
		return bytes.Compare(x[0].raw, y[0].raw)
	}
	return bytes.Compare(plain(nil, x), plain(nil, y))
}

// plain appends the encoding of pieces without type numbers.
func plain(b []byte, pieces []piece) []byte {
	for _, p := range pieces {
		b = append(b, p.raw...)
		b = plain(b, p.contents)
	}
	return b
}

// A writer writes definitions and pieces with new type numbers.
type writer struct {
	types   map[int]definition
	numbers map[int]int // maps type numbers of the input stream to those of the output
	order   []int       // keys of numbers, in order of use
	scratch []byte
}

// use numbers a type and its component types, depth first.
func (w *writer) use(id int) {
	d, ok := w.types[id]
	if _, known := w.numbers[id]; !ok || known {
		return
	}
	w.numbers[id] = firstNumber + len(w.order)
	w.order = append(w.order, id)
	for _, f := range d.fields {
		w.use(f.id)
	}
}

// varies reports whether values of the numbered types may contain maps or interfaces. The encoding
// of other values is already canonical.
func (w *writer) varies() bool {
	return slices.ContainsFunc(w.order, func(id int) bool {
		d := w.types[id]
		return d.kind == mapKind || slices.ContainsFunc(d.fields, func(f field) bool { return f.id == interfaceID })
	})
}

// number numbers the types that pieces use.
func (w *writer) number(pieces []piece) {
	for _, p := range pieces {
		if p.concrete != 0 {
			w.use(p.concrete)
			w.number(p.contents)
		}
	}
}

// id returns the new number of a type. Predefined types keep their numbers.
func (w *writer) id(id int) int64 {
	if n, ok := w.numbers[id]; ok {
		return int64(n)
	}
	return int64(id)
}

// size returns the length of the data that value appends.
func (w *writer) size(pieces []piece) int {
	size := 0
	for _, p := range pieces {
		size += len(p.raw)
		if p.concrete != 0 {
			inner := w.size(p.contents)
			size += inner + len(appendInt(nil, w.id(p.concrete))) + len(appendUint(nil, uint64(inner)))
		}
	}
	return size
}

func (w *writer) value(b []byte, pieces []piece) []byte {
	for _, p := range pieces {
		b = append(b, p.raw...)
		if p.concrete != 0 {
			b = appendInt(b, w.id(p.concrete))
			b = appendUint(b, uint64(w.size(p.contents)))
			b = w.value(b, p.contents)
		}
	}
	return b
}

// value reads a value of a type, which is a Value in the grammar of encoding/gob.
func (r *reader) value(id int) []piece {
	r.begin()
	if r.types[id].kind != structKind {
		r.uint() // a zero precedes values other than structs
	}
	r.field(id)
	return r.end()
}

// field reads a FieldValue of the grammar.
func (r *reader) field(id int) {
	switch d := r.types[id]; {
	case id == boolID || id == intID || id == uintID || id == floatID:
		r.uint()
	case id == complexID:
		r.uint()
		r.uint()
	case id == bytesID || id == stringID || d.kind >= gobEncoderKind:
		r.bytes(r.uint())
	case id == interfaceID:
		r.interfaceValue()
	case d.kind == arrayKind || d.kind == sliceKind:
		for range r.uint() {
			r.field(d.fields[0].id)
		}
	case d.kind == mapKind:
		r.mapValue(d)
	case d.kind == structKind:
		for n := -1; ; {
			delta := r.uint()
			if delta == 0 {
				return
			}
			if delta > uint64(len(d.fields)-1-n) {
				panic(malformed("gob: unknown field"))
			}
			n += int(delta)
			r.field(d.fields[n].id)
		}
	default:
		panic(malformed("gob: unknown type"))
	}
}

// mapValue reads a map and sorts its entries.
func (r *reader) mapValue(d definition) {
	n := r.uint()
	if n > uint64(len(r.rest)) { // each entry has at least two bytes
		panic(malformed("gob: impossible length of a map"))
	}
	r.cut()
	before := r.pieces
	entries := make([][]piece, n)
	all := make([]piece, 0, n)
	for i := range entries {
		from := len(all)
		r.pieces = all
		r.start = r.rest
		r.field(d.fields[0].id)
		r.field(d.fields[1].id)
		r.cut()
		all = r.pieces
		entries[i] = all[from:len(all):len(all)]
	}
	slices.SortFunc(entries, compare)
	r.pieces = before
	for _, e := range entries {
		r.pieces = append(r.pieces, e...)
	}
}

// interfaceValue reads an InterfaceValue of the grammar.
func (r *reader) interfaceValue() {
	n := r.uint()
	if n == 0 {
		return
	}
	r.bytes(n)
	r.cut()
	outer := r.pieces
	concrete := r.typeSequence()
	r.uint() // length, which writer.value computes again
	r.pieces = nil
	contents := r.value(concrete)
	r.pieces = outer
	last := &r.pieces[len(r.pieces)-1] // ends with the type name
	last.concrete, last.contents = concrete, contents
	r.start = r.rest
}
