package mpj

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
)

// Items returns an Op whose items have n elements each, for example a multiplication of 2×2 matrices
// with four elements each. Reductions split vectors only between items. They reject vectors and
// parts whose length is not a multiple of n:
//
//	mpj.Allreduce(comm, nil, matrices, mpj.Items(4, multiply))
//
// An Op without Items may be called on any part of the vectors. A function that calls the result of
// Items is such an Op, because a reduction cannot see that its items have n elements. If a reduction
// splits an item of such a function, the result of Items panics. Apply Items last instead:
//
//	mpj.Allreduce(comm, nil, matrices, mpj.Items(4, traced(multiply)))
//
// For items that are structs or arrays, OpOf is simpler.
func Items[T Element](n int, op Op[T]) Op[T] {
	if op == nil {
		return nil
	}
	items := func(in, inout []T) {
		if len(in) == 0 && len(inout) > 0 { // a query of itemLength
			binary.NativeEndian.PutUint64(bytesOf(inout), uint64(n))
			return
		}
		if n < 1 || len(in)%n != 0 {
			panic(fmt.Sprintf("mpj.Items: called with %d elements for items of %d: pass the result of Items itself to the reduction", len(in), n))
		}
		op(in, inout)
	}
	itemsCode.add(reflect.ValueOf(items).Pointer())
	return items
}

// itemsCode contains the code addresses of the functions that Items has returned. The functions for
// one element type have the same address.
var itemsCode codeSet

// A codeSet is a set of code addresses.
type codeSet struct {
	mu       sync.RWMutex
	contains map[uintptr]bool
}

func (s *codeSet) add(pc uintptr) {
	if s.has(pc) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contains == nil {
		s.contains = make(map[uintptr]bool)
	}
	s.contains[pc] = true
}

func (s *codeSet) has(pc uintptr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contains[pc]
}

// itemLength returns the number of elements in an item of op: the argument of Items, or 1. It calls
// only functions that Items returned.
func itemLength[T any](op func(in, inout []T)) int {
	if !itemsCode.has(reflect.ValueOf(op).Pointer()) {
		return 1
	}
	var answer [locSize]byte // its size is a multiple of the size of every Element
	op(nil, elementsOf[T](answer[:]))
	return int(binary.NativeEndian.Uint64(answer[:]))
}
