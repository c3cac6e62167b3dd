package mpj

import (
	"fmt"
	"reflect"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Field is a part of a datatype that TypeStruct makes: items of a datatype at a displacement.
type Field struct {
	block layout.Block
	err   *Error
}

// FieldOf returns the part that consists of blocklength items of t at a displacement in bytes, such
// as the result of unsafe.Offsetof.
func FieldOf[U any](blocklength, displacement int, t Datatype[U]) Field {
	if err := t.fault(); err != nil {
		return Field{err: err}
	}
	return Field{block: layout.Block{Length: blocklength, Displacement: displacement, Type: t.of}}
}

// TypeStruct returns a datatype over a []T that consists of parts of different types, like
// MPI_Type_create_struct. In most cases TypeStructOf is simpler. T may contain only the types that
// TypeStructOf accepts.
func TypeStruct[T any](fields ...Field) Datatype[T] {
	if err := checkPlain(reflect.TypeFor[T]()); err != nil {
		return made[T]("TypeStruct", nil, err)
	}
	blocks := make([]layout.Block, len(fields))
	for i, f := range fields {
		if f.err != nil {
			return Datatype[T]{err: f.err}
		}
		blocks[i] = f.block
	}
	l, err := layout.Struct(blocks)
	return made[T]("TypeStruct", l, err)
}

// TypeStructOf returns the datatype of the Go struct T, or of its named fields. The extent of the
// datatype is the size of T, as in a []T. Padding is not sent.
//
// T may contain only numbers, and arrays and structs of them. A pointer, string, slice or map has
// no meaning in another process, and not every byte is a valid bool. TypeStructOf uses reflection,
// so keep the result instead of calling it repeatedly.
func TypeStructOf[T any](fields ...string) Datatype[T] {
	l, err := structLayout(reflect.TypeFor[T](), fields)
	return made[T]("TypeStructOf", l, err)
}

func structLayout(t reflect.Type, names []string) (*layout.Layout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct", t)
	}
	if err := checkPlain(t); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return plainLayout(t)
	}
	var blocks []layout.Block
	for _, name := range names {
		f, ok := t.FieldByName(name)
		if !ok || len(f.Index) > 1 {
			return nil, fmt.Errorf("%v has no field %s", t, name)
		}
		l, err := plainLayout(f.Type)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, layout.Block{Length: 1, Displacement: int(f.Offset), Type: l})
	}
	return sized(blocks, t)
}

// checkPlain returns an error if values of type t cannot be received as bytes from another process.
func checkPlain(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return checkPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := checkPlain(t.Field(i).Type); err != nil {
				return fmt.Errorf("field %s of %v: %w", t.Field(i).Name, t, err)
			}
		}
		return nil
	}
	return fmt.Errorf("unsupported type %v: want numbers, or arrays or structs of numbers", t)
}

// plainLayout returns the layout of a type that checkPlain accepts.
func plainLayout(t reflect.Type) (*layout.Layout, error) {
	switch t.Kind() {
	case reflect.Array:
		l, err := plainLayout(t.Elem())
		if err != nil {
			return nil, err
		}
		return layout.Contiguous(t.Len(), l)
	case reflect.Struct:
		var blocks []layout.Block
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" { // padding
				continue
			}
			l, err := plainLayout(f.Type)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, layout.Block{Length: 1, Displacement: int(f.Offset), Type: l})
		}
		return sized(blocks, t)
	}
	return layout.Basic(int(t.Size())), nil
}

// sized returns the layout of blocks with the size of a t.
func sized(blocks []layout.Block, t reflect.Type) (*layout.Layout, error) {
	l, err := layout.Struct(blocks)
	if err != nil {
		return nil, err
	}
	return layout.Padded(l, 0, int(t.Size()))
}
