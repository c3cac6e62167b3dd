package mpj

// Pack appends the elements of src to dst, in the encoding of messages, and returns the extended
// slice. With Pack and PackTyped, a program can build a message from parts of different types, which
// it sends and receives as []byte:
//
//	b := mpj.Pack(nil, []int{len(names)})
//	b = mpj.Pack(b, weights)
//	err := mpj.Send(comm, b, 1, 0)
func Pack[T Element](dst []byte, src []T) []byte { return append(dst, bytesOf(src)...) }

// PackTyped is Pack for items of a datatype.
func PackTyped(dst []byte, x Typed) ([]byte, error) {
	if err := x.usable("PackTyped"); err != nil {
		return dst, err
	}
	if b, ok := x.buffer.Run(); ok {
		return append(dst, b...), nil
	}
	return x.buffer.Append(dst), nil
}

// PackSize returns the size in bytes of count elements of type T in a message. For items of a
// datatype, use Typed.Size.
func PackSize[T Element](count int) int { return count * sizeOf[T]() }

// Unpack fills dst from the beginning of src and returns the rest of src. If src is shorter than
// dst, Unpack leaves dst unchanged and returns an error.
func Unpack[T Element](src []byte, dst []T) (rest []byte, err error) {
	b := bytesOf(dst)
	if len(src) < len(b) {
		return src, failf(ErrTruncate, "Unpack", "%d elements need %d bytes, %d are left", len(dst), len(b), len(src))
	}
	copy(b, src)
	return src[len(b):], nil
}

// UnpackTyped is Unpack for items of a datatype.
func UnpackTyped(src []byte, x Typed) (rest []byte, err error) {
	if err := x.usable("UnpackTyped"); err != nil {
		return src, err
	}
	n := x.Size()
	if len(src) < n {
		return src, failf(ErrTruncate, "UnpackTyped", "%d items need %d bytes, %d are left", x.buffer.Count, n, len(src))
	}
	x.buffer.Unpack(src[:n])
	return src[n:], nil
}
