package collective

import (
	"math/bits"
	"sync"
)

// A scratch is memory for what arrives and is combined or passed on. It is
// aligned for every element type.
type scratch struct{ b []byte }

// Scratch of these powers of two of bytes is kept for the next call.
const (
	smallestScratch = 6
	largestScratch  = 26
)

var scratches [largestScratch + 1]sync.Pool // by the power

// borrow returns size bytes of any content, until free.
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
