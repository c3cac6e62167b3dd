package collective

import (
	"math/bits"
	"sync"
)

// A scratch is a buffer for data that is received and then combined or forwarded. It is aligned for
// every element type.
type scratch struct{ b []byte }

// Scratch buffers of 2^smallestScratch to 2^largestScratch bytes are kept for later calls.
const (
	smallestScratch = 6
	largestScratch  = 26
)

var scratches [largestScratch + 1]sync.Pool // indexed by the power of two

// borrow returns size bytes with undefined contents, for use until the call of free.
func borrow(size int) *scratch {
	power := max(bits.Len(uint(max(size, 1)-1)), smallestScratch)
	if power > largestScratch {
		return &scratch{make([]byte, size)}
	}
	s, ok := scratches[power].Get().(*scratch)
	if !ok {
		s = &scratch{make([]byte, 1<<power)}
	}
	s.b = s.b[:size]
	return s
}

func (s *scratch) free() {
	s.b = s.b[:cap(s.b)]
	power := bits.Len(uint(len(s.b))) - 1
	if power >= smallestScratch && power <= largestScratch && len(s.b) == 1<<power {
		scratches[power].Put(s)
	}
}
