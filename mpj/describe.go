package mpj

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
)

// Descriptions of calls, which the ranks compare with P2PMPI_CHECK: see package calls.

// plainCall returns a call whose arguments, if any, may differ between ranks.
func plainCall(own string) calls.Call {
	return calls.Call{Root: calls.None, Count: calls.None, Own: own}
}

// alikeCall returns a call whose arguments must be the same at all ranks.
func alikeCall(format string, arguments ...any) calls.Call {
	return calls.Call{Root: calls.None, Count: calls.None, Alike: fmt.Sprintf(format, arguments...)}
}

// elementCall returns a call with elements of type T.
func elementCall[T Element](root, count int) calls.Call {
	return calls.Call{Root: root, Count: count, Type: elementName[T]()}
}

// reductionCall returns a call that combines count elements.
func reductionCall[T Element](root, count int, op Op[T]) calls.Call {
	k := elementCall[T](root, count)
	if f := runtime.FuncForPC(reflect.ValueOf(op).Pointer()); f != nil {
		k.Operation = calls.OperationName(f.Name())
	}
	return k
}

// placed returns k with its Place: InPlace if send is nil, and Apart otherwise. If count is 0, either fits, and k is
// unchanged.
func placed[T Element](k calls.Call, send []T, count int) calls.Call {
	switch {
	case count == 0:
	case send == nil:
		k.Place = calls.InPlace
	default:
		k.Place = calls.Apart
	}
	return k
}

// elementName returns the name by which element types are compared: the name of the underlying type,
// or of the struct.
func elementName[T Element]() string {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct {
		return strings.TrimPrefix(t.String(), "mpj.")
	}
	return t.Kind().String()
}

// everyPart returns the parts exchanged with each rank.
func everyPart(counts []int) []calls.Part {
	parts := make([]calls.Part, len(counts))
	for i, n := range counts {
		parts[i] = calls.Part{Rank: i, Count: n}
	}
	return parts
}

// onePart returns the part exchanged with one rank.
func onePart(rank, count int) []calls.Part { return []calls.Part{{Rank: rank, Count: count}} }

// edgeParts returns the parts exchanged along edges, in blocks of elements of the given size.
func edgeParts(edges []edge, blocks [][]byte, size int) []calls.Part {
	var parts []calls.Part
	for i, e := range edges {
		if e.rank != ProcNull && i < len(blocks) {
			parts = append(parts, calls.Part{Rank: e.rank, Tag: int(e.tag), Count: len(blocks[i]) / size})
		}
	}
	return parts
}

// typedParts returns the parts exchanged with each rank, in bytes.
func typedParts(items []Typed) []calls.Part {
	parts := make([]calls.Part, len(items))
	for i, x := range items {
		parts[i] = calls.Part{Rank: i, Count: x.Size()}
	}
	return parts
}
