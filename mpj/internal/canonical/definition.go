package canonical

// The numbers of predefined types, and the first number of other ones.
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

// A kind of type is the field of gob's wireType that defines it, from 1.
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

// A definition is a wireType of encoding/gob. The fields of a type that is no
// struct are the types that it is made of: key and element, or element.
type definition struct {
	kind   kind
	length int // of an array
	fields []field
}

type field struct {
	name []byte // in a struct
	id   int
}

// A wireType is encoded as a struct: each field that is not zero after its
// distance from the field before it, and a zero at the end. So are the types of
// its fields, of which the first is a CommonType{Name, Id}.
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
					r.bytes(r.uint()) // the name
				} else {
					r.int() // the type's own number
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

// fields reads a struct of which read reads the n-th field.
func (r *reader) fields(read func(n int)) {
	n := -1
	for delta := r.uint(); delta != 0; delta = r.uint() {
		if n += int(delta); n < 0 || n > 2 {
			panic(malformed("gob: unknown field of a definition"))
		}
		read(n)
	}
}

// definition appends the definition of a type with its new number. It leaves
// out the name: a type's name in gob depends on where the process met the type
// first, and no decoder uses it.
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
	return append(b, 0, 0) // the type of the kind, and wireType
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
