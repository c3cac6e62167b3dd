package mpj

import (
	"fmt"
	"reflect"
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

// elementName returns the name by which element types are compared: the name of the underlying type,
// or of the struct.
func elementName[T Element]() string {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct {
		return strings.TrimPrefix(t.String(), "mpj.")
	}
	return t.Kind().String()
}
