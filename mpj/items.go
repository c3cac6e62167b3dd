package mpj

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// Items returns an Op whose items have n elements each, for example a multiplication of 2×2 matrices
// with four elements each. Reductions split vectors only between items. They reject vectors and
// parts whose length is not a multiple of n:
//
//	mpj.Allreduce(comm, nil, matrices, mpj.Items(4, multiply))
//
// An Op without Items may be called on any part of the vectors.
//
//go:noinline
func Items[T Element](n int, op Op[T]) Op[T] {
	if op == nil {
		return nil
	}
	return func(in, inout []T) {
		if len(in) == 0 && len(inout) > 0 { // a query of itemLength
			binary.NativeEndian.PutUint64(bytesOf(inout), uint64(n))
			return
		}
		op(in, inout)
	}
}

// itemsName is the prefix of the names of the functions that Items returns.
const itemsName = packagePath + "Items["

// itemsCode caches, for each code address, whether it belongs to a function that Items returns.
// Looking up the name of a function allocates memory.
var itemsCode struct {
	mu    sync.RWMutex
	known map[uintptr]bool
}

// madeByItems reports whether the function at code address pc was returned by Items.
func madeByItems(pc uintptr) bool {
	itemsCode.mu.RLock()
	yes, ok := itemsCode.known[pc]
	itemsCode.mu.RUnlock()
	if ok {
		return yes
	}
	f := runtime.FuncForPC(pc)
	yes = f != nil && strings.HasPrefix(f.Name(), itemsName)
	itemsCode.mu.Lock()
	defer itemsCode.mu.Unlock()
	if itemsCode.known == nil {
		itemsCode.known = make(map[uintptr]bool)
	}
	itemsCode.known[pc] = yes
	return yes
}

// itemLength returns the number of elements in an item of op: the argument of Items, or 1. It calls
// only functions that Items returned.
func itemLength[T Element](op Op[T]) int {
	if !madeByItems(reflect.ValueOf(op).Pointer()) {
		return 1
	}
	var answer [locSize]byte // its size is a multiple of the size of every Element
	op(nil, elementsOf[T](answer[:]))
	return int(binary.NativeEndian.Uint64(answer[:]))
}

// checkOp returns an error if the operation of a reduction is nil, or if a length is not a multiple
// of its item length.
func checkOp[T Element](c *Comm, op string, combine Op[T], lengths ...int) error {
	if combine == nil {
		return c.failf(ErrOp, op, "op is nil")
	}
	if why := unfit(combine, lengths...); why != "" {
		return c.failf(ErrCount, op, "%s", why)
	}
	return nil
}

// unfit returns why the item length of combine is invalid or one of lengths is not a multiple of it, or "".
func unfit[T Element](combine Op[T], lengths ...int) string {
	n := itemLength(combine)
	if n < 1 {
		return fmt.Sprintf("the operation's item length is %d, want 1 or more", n)
	}
	for _, l := range lengths {
		if l%n != 0 {
			return fmt.Sprintf("%d elements are not a multiple of the operation's item length %d", l, n)
		}
	}
	return ""
}
