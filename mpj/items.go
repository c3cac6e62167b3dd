package mpj

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// Items makes an Op of one whose items have n elements each, for example that
// multiplies 2×2 matrices of four elements. Reductions cut vectors between items
// only, and refuse vectors and parts whose length is no multiple of n:
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
		if len(in) == 0 && len(inout) > 0 { // itemLength asks
			binary.NativeEndian.PutUint64(bytesOf(inout), uint64(n))
			return
		}
		op(in, inout)
	}
}

// itemsName begins the name of the functions that Items returns.
const itemsName = packagePath + "Items["

// itemsCode says of code addresses whether they are of functions that Items
// returns. To ask for a function's name allocates memory.
var itemsCode struct {
	mu    sync.RWMutex
	known map[uintptr]bool
}

// madeByItems reports whether a function at a code address is one that Items
// has returned.
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

// itemLength returns how many elements an item of op has: what was given to
// Items, or 1. No other function is called.
func itemLength[T Element](op Op[T]) int {
	if !madeByItems(reflect.ValueOf(op).Pointer()) {
		return 1
	}
	var answer [locSize]byte // a multiple of the size of every Element
	op(nil, elementsOf[T](answer[:]))
	return int(binary.NativeEndian.Uint64(answer[:]))
}

// checkOp refuses a reduction whose operation is nil, or does not fit lengths.
func checkOp[T Element](c *Comm, op string, combine Op[T], lengths ...int) error {
	if combine == nil {
		return c.failf(ErrOp, op, "it is nil")
	}
	if n, length := unfit(combine, lengths...); length != 0 {
		return c.failf(ErrCount, op, "%d elements, and the operation's items have %d", length, n)
	}
	return nil
}

// unfit returns the length of combine's items, and the first of lengths that is
// no number of them, or 0.
func unfit[T Element](combine Op[T], lengths ...int) (n, length int) {
	n = itemLength(combine)
	for _, l := range lengths {
		if l != 0 && (n < 1 || l%n != 0) {
			return n, l
		}
	}
	return n, 0
}
