package canonical

// The numbers of predefined types, and the first number of other types.
const (
	boolID      = 1
	intID       = 2
	uintID      = 3
	floatID     = 4
	bytesID     = 5
	stringID    = 6
	complexID   = 7
	interfaceID = 8
	firstNumber = 65
)

// A kind is the number, starting with 1, of the field of gob's wireType that defines a type.
type kind int

const (
	arrayKind kind = iota + 1
	sliceKind
	structKind
	mapKind
	gobEncoderKind
	binaryMarshalerKind
	textMarshalerKind
)

// A definition is a wireType of encoding/gob. For a type other than a struct, fields holds its
// component types: key and element, or element.
type definition struct {
	kind   kind
	length int // length of an array
	fields []field
}

type field struct {
	name []byte // set in structs
	id   int
}

// definition reads a wireType. A wireType is encoded as a struct: each nonzero field follows its
// distance from the previous field, and a zero ends the struct. The types of its fields are encoded
// in the same way; the first of them is a CommonType{Name, Id}.
func (r *reader) definition() (d definition) {
	d.kind = kind(r.uint())
	if d.kind < arrayKind || d.kind > textMarshalerKind {
		panic(malformed("gob: unknown kind of type"))
	}
	r.fields(func(n int) {
		switch {
		case n == 0:
			r.fields(func(n int) {
				if n == 0 {
					r.bytes(r.uint()) // name
				} else {
					r.int() // number of the type itself
				}
			})
		case d.kind == structKind:
			for range r.uint() {
				var f field
				r.fields(func(n int) {
					if n == 0 {
						f.name = r.bytes(r.uint())
					} else {
						f.id = r.int()
					}
				})
				d.fields = append(d.fields, f)
			}
		case d.kind == arrayKind && n == 2:
			d.length = r.int()
		default:
			d.fields = append(d.fields, field{id: r.int()})
		}
	})
	if r.uint() != 0 {
		panic(malformed("gob: a type has two kinds"))
	}
	if n := len(d.fields); d.kind == mapKind && n != 2 || (d.kind == arrayKind || d.kind == sliceKind) && n != 1 {
		panic(malformed("gob: incomplete definition"))
	}
	return d
}

// fields reads a struct, and calls read to read its n-th field.
func (r *reader) fields(read func(n int)) {
	n := -1
	for delta := r.uint(); delta != 0; delta = r.uint() {
		if n += int(delta); n < 0 || n > 2 {
			panic(malformed("gob: unknown field of a definition"))
		}
		read(n)
	}
}

// definition appends the definition of a type with its new number. It omits the name, because in gob
// the name depends on the first use of the type in the process, and no decoder uses the name.
func (w *writer) definition(b []byte, id int) []byte {
	d := w.types[id]
	b = appendInt(b, -w.id(id))
	b = appendUint(b, uint64(d.kind))
	b = append(b, 1, 2) // CommonType, Id
	b = appendInt(b, w.id(id))
	b = append(b, 0)
	switch d.kind {
	case structKind:
		b = w.structFields(b, d.fields)
	case arrayKind, sliceKind, mapKind:
		for _, f := range d.fields {
			b = append(b, 1)
			b = appendInt(b, w.id(f.id))
		}
		if d.length != 0 {
			b = append(b, 1)
			b = appendInt(b, int64(d.length))
		}
	}
	return append(b, 0, 0) // ends the struct of the kind, and wireType
}

func (w *writer) structFields(b []byte, fields []field) []byte {
	if len(fields) == 0 {
		return b
	}
	b = append(b, 1)
	b = appendUint(b, uint64(len(fields)))
	for _, f := range fields {
		b = append(b, 1)
		b = appendBytes(b, f.name)
		b = append(b, 1)
		b = appendInt(b, w.id(f.id))
		b = append(b, 0)
	}
	return b
}

func appendBytes(b, s []byte) []byte {
	b = appendUint(b, uint64(len(s)))
	return append(b, s...)
}
