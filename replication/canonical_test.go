package replication

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// canonical encodes everything that a value contains or refers to, including unexported fields, so that it
// automatically includes new fields of the protocol. It ignores differences between equal states: the capacity of
// slices, nil or empty slices and maps, the order of maps, and addresses. It distinguishes two references to one
// object from references to two equal objects.
func canonical(x any) []byte {
	e := encoder{known: make(map[reference]int)}
	e.value(reflect.ValueOf(x))
	return e.b
}

type encoder struct {
	b     []byte
	known map[reference]int // numbers of pointer targets, in the order of their first occurrence
}

// A reference is an address and a type, because a struct and its first field share the address.
type reference struct {
	at uintptr
	of reflect.Type
}

func (e *encoder) number(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		e.b = append(e.b, 0)
		if v.Bool() {
			e.b[len(e.b)-1] = 1
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.b = binary.AppendVarint(e.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.number(v.Uint())
	case reflect.String:
		e.number(uint64(v.Len()))
		e.b = append(e.b, v.String()...)
	case reflect.Slice, reflect.Array:
		e.number(uint64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
	case reflect.Map:
		e.mapping(v)
	case reflect.Pointer:
		e.pointer(v)
	default:
		panic(fmt.Sprintf("a state cannot contain a %v", v.Type()))
	}
}

// pointer writes 0 for nil, 1 and the target at the first occurrence of the target, and the number of the target
// later.
func (e *encoder) pointer(v reflect.Value) {
	if v.IsNil() {
		e.number(0)
		return
	}
	r := reference{v.Pointer(), v.Type()}
	if n, again := e.known[r]; again {
		e.number(uint64(n))
		return
	}
	e.known[r] = 2 + len(e.known)
	e.number(1)
	e.value(v.Elem())
}

// mapping writes the entries ordered by the encodings of their keys, which contain no pointers.
func (e *encoder) mapping(v reflect.Value) {
	type entry struct {
		key   []byte
		value reflect.Value
	}
	var entries []entry
	for it := v.MapRange(); it.Next(); {
		k := encoder{}
		k.value(it.Key())
		entries = append(entries, entry{k.b, it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	e.number(uint64(len(entries)))
	for _, en := range entries {
		e.b = append(e.b, en.key...)
		e.value(en.value)
	}
}

func TestCanonicalDistinguishesStates(t *testing.T) {
	type link struct {
		n    int
		next *link
	}
	ring := &link{n: 1}
	ring.next = ring
	one, other := 1, 1
	tests := []struct {
		name string
		a, b any
		same bool
	}{
		{"capacity", make([]int, 1, 9), []int{0}, true},
		{"nil and empty", []int(nil), []int{}, true},
		{"order of a map", map[int]int{1: 2, 3: 4, 5: 6}, map[int]int{5: 6, 3: 4, 1: 2}, true},
		{"address", &link{n: 1}, &link{n: 1}, true},
		{"value behind a pointer", &link{n: 1}, &link{n: 2}, false},
		{"ring and chain", ring, &link{n: 1, next: &link{n: 1}}, false},
		{"one target or two equal targets", []*int{&one, &one}, []*int{&one, &other}, false},
		{"boundary between slices", [][]int{{1}, {}}, [][]int{{}, {1}}, false},
		{"value of a map", map[int]int{1: 2}, map[int]int{1: 3}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := bytes.Equal(canonical(tt.a), canonical(tt.b)); got != tt.same {
				t.Errorf("the encodings are equal: %v, want %v", got, tt.same)
			}
		})
	}
}
