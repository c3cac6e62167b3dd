package layout

import (
	"encoding/binary"
	"fmt"
)

// Check returns an error unless count items, with their origin at byte origin, lie within a buffer
// of memory bytes. Callers of Append and Unpack must have called Check.
func (l *Layout) Check(origin, count, memory int) error {
	if count < 0 {
		return fmt.Errorf("%d items", count)
	}
	if count == 0 || l.size == 0 {
		return nil
	}
	span, err := product(count-1, l.Extent())
	if err != nil {
		return err
	}
	if _, err := product(count, l.size); err != nil {
		return err
	}
	if !within(origin) {
		return errTooLarge
	}
	if low, high := origin+min(0, span)+l.low, origin+max(0, span)+l.high; low < 0 || high > memory {
		return fmt.Errorf("%d items would touch bytes %d to %d of a buffer of %d bytes", count, low, high-1, memory)
	}
	return nil
}

// Run returns the location of the data of count items, relative to their origin, if the data is one
// contiguous run of bytes and so needs no packing.
func (l *Layout) Run(count int) (offset, length int, ok bool) {
	if count == 0 || l.size == 0 {
		return 0, 0, true
	}
	s := l.segments[0]
	if len(l.segments) != 1 || s.count != 1 || count > 1 && s.length != l.Extent() {
		return 0, 0, false
	}
	return s.offset, s.length * count, true
}

// Append appends the data of count items at origin to dst.
func (l *Layout) Append(dst, memory []byte, origin, count int) []byte {
	n := len(dst)
	dst = grow(dst, l.size*count)
	for i := range count {
		at := origin + i*l.Extent()
		for _, s := range l.segments {
			n += s.pack(dst[n:], memory, at+s.offset)
		}
	}
	return dst
}

// Unpack copies packed into count items at origin. packed may be shorter than the items. Unpack
// returns the number of bytes used.
func (l *Layout) Unpack(memory []byte, origin, count int, packed []byte) int {
	n := 0
	for i := range count {
		at := origin + i*l.Extent()
		for _, s := range l.segments {
			taken := s.unpack(memory, at+s.offset, packed[n:])
			if n += taken; taken < s.length*s.count {
				return n
			}
		}
	}
	return n
}

// pack copies the runs of s to dst. The first run is at offset at of memory.
func (s segment) pack(dst, memory []byte, at int) int {
	switch s.length {
	case 8:
		for i := range s.count {
			binary.LittleEndian.PutUint64(dst[8*i:], binary.LittleEndian.Uint64(memory[at:]))
			at += s.stride
		}
	case 4:
		for i := range s.count {
			binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(memory[at:]))
			at += s.stride
		}
	default:
		for i := range s.count {
			copy(dst[i*s.length:], memory[at:at+s.length])
			at += s.stride
		}
	}
	return s.length * s.count
}

// unpack is the inverse of pack. packed may end within s.
func (s segment) unpack(memory []byte, at int, packed []byte) int {
	whole := min(s.count, len(packed)/s.length)
	switch s.length {
	case 8:
		for i := range whole {
			binary.LittleEndian.PutUint64(memory[at:], binary.LittleEndian.Uint64(packed[8*i:]))
			at += s.stride
		}
	case 4:
		for i := range whole {
			binary.LittleEndian.PutUint32(memory[at:], binary.LittleEndian.Uint32(packed[4*i:]))
			at += s.stride
		}
	default:
		for i := range whole {
			copy(memory[at:at+s.length], packed[i*s.length:])
			at += s.stride
		}
	}
	if whole == s.count {
		return s.length * s.count
	}
	return whole*s.length + copy(memory[at:at+s.length], packed[whole*s.length:])
}

// grow returns dst extended by n bytes.
func grow(dst []byte, n int) []byte {
	if n <= cap(dst)-len(dst) {
		return dst[:len(dst)+n]
	}
	longer := make([]byte, len(dst)+n, max(len(dst)+n, 2*cap(dst)))
	copy(longer, dst)
	return longer
}
