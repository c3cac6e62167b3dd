package mpj

import "unsafe"

// Integer is the set of integer types that messages may contain.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Float is the set of floating-point types.
type Float interface{ ~float32 | ~float64 }

// Complex is the set of complex types.
type Complex interface{ ~complex64 | ~complex128 }

// Ordered is the set of number types that are ordered.
type Ordered interface{ Integer | Float }

// Number is the set of types that can be added and multiplied.
type Number interface{ Ordered | Complex }

// Element is the set of element types of messages. It excludes bool, because a byte from another
// process need not be a valid bool: use byte, or SendValue.
type Element interface{ Number | Located }

// Located is the set of values with an index, for MaxLoc and MinLoc.
type Located interface {
	Loc[int] | Loc[int8] | Loc[int16] | Loc[int32] | Loc[int64] |
		Loc[uint] | Loc[uint8] | Loc[uint16] | Loc[uint32] | Loc[uint64] | Loc[float32] | Loc[float64]
}

// bytesOf returns the memory of s as a message. In messages, elements are little-endian and int and
// uint have 8 bytes, as in the memory of every machine that Init accepts, so no conversion is
// needed. bytesOf zeroes the padding of Locs.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
	if sizeOf[T]() == locSize {
		clearPadding(b, paddingFrom[T]())
	}
	return b
}

// locSize is the size of every Loc, in bytes. A value of fewer than 8 bytes is followed by padding,
// whose contents Go does not define.
const locSize = 16

// paddingFrom returns the offset of the padding in a T of size locSize, or 8 if T has no padding.
func paddingFrom[T Element]() int {
	var zero T
	switch any(zero).(type) {
	case Loc[int8], Loc[uint8]:
		return 1
	case Loc[int16], Loc[uint16]:
		return 2
	case Loc[int32], Loc[uint32], Loc[float32]:
		return 4
	}
	return 8
}

// clearPadding zeroes the padding of Locs, so that replicas send the same bytes and no memory
// contents leak. It does not write bytes that are already zero, because another goroutine may also
// be sending them.
func clearPadding(b []byte, from int) {
	for ; from < 8 && len(b) >= locSize; b = b[locSize:] {
		for i := from; i < 8; i++ {
			if b[i] != 0 {
				b[i] = 0
			}
		}
	}
}

// sizeOf returns the size of one element, in bytes.
func sizeOf[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// wireMachine reports whether this machine stores elements in memory as messages do.
func wireMachine() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1 && unsafe.Sizeof(int(0)) == 8
}
