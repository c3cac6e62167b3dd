package engine

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Large payloads are used again: to get fresh memory from the system costs more
// than to copy a message into it.

// Payloads of these sizes, in powers of two, are kept. Smaller ones are cheap,
// and larger ones too rare to hold on to.
const (
	smallestKept = 12 // 4 KiB
	largestKept  = 23 // 8 MiB
)

// kept has the free ones by the power, each as a *byte, its first: that takes no
// allocation to put into a pool, as a slice does.
var kept [largestKept + 1]sync.Pool

// allocate returns size bytes of any content, for the payload of a message.
func allocate(size int) []byte {
	power := bits.Len(uint(size - 1))
	if size < 1<<smallestKept || power > largestKept {
		return make([]byte, size)
	}
	if first, ok := kept[power].Get().(*byte); ok {
		return unsafe.Slice(first, 1<<power)[:size]
	}
	return make([]byte, size, 1<<power)
}

// release takes a payload that nobody uses any more.
func release(payload []byte) {
	power := bits.Len(uint(cap(payload))) - 1
	if power >= smallestKept && power <= largestKept && cap(payload) == 1<<power {
		kept[power].Put(unsafe.SliceData(payload))
	}
}

// duplicate returns a copy of payload.
func duplicate(payload []byte) []byte {
	b := allocate(len(payload))
	copy(b, payload)
	return b
}

// Short payloads that wait to be acknowledged have a pool of each engine's own,
// which its mutex guards: that of sync allocates when it takes something back.
const (
	shortPayload = 1 << 10 // bytes
	shortsKept   = 2 * ackFrames
)

// lendOut returns an empty slice with room for size bytes, until giveBack. e.mu
// is held.
func (e *Engine) lendOut(size int) []byte {
	if size > shortPayload {
		return allocate(size)[:0]
	}
	if last := len(e.shorts) - 1; last >= 0 {
		b := e.shorts[last]
		e.shorts = e.shorts[:last]
		return b
	}
	return make([]byte, 0, shortPayload)
}

// copyOf returns a copy of payload, for a message that is kept.
func (e *Engine) copyOf(payload []byte) []byte {
	b := e.room(len(payload))
	copy(b, payload)
	return b
}

// room returns size bytes of any content. Short ones are from the pool as long as
// it has not lent out too many: each has room for more than it is asked for.
func (e *Engine) room(size int) []byte {
	if size == 0 || size > shortPayload {
		return allocate(size)
	}
	if last := len(e.shorts) - 1; last >= 0 {
		b := e.shorts[last]
		e.shorts = e.shorts[:last]
		return b[:size]
	}
	if e.shortsMade < shortsKept {
		e.shortsMade++
		return make([]byte, size, shortPayload)
	}
	return make([]byte, size)
}

// giveBack takes what lendOut or room lent.
func (e *Engine) giveBack(b []byte) {
	switch {
	case cap(b) != shortPayload:
		release(b)
	case len(e.shorts) < shortsKept:
		e.shorts = append(e.shorts, b[:0])
	}
}
