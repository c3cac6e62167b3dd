package engine

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Large payloads are reused: allocating fresh memory from the system costs more than copying a
// message into it.

// The smallest and largest kept payloads, as powers of two. Smaller payloads are cheap to allocate,
// and larger ones too rare to keep.
const (
	smallestKept = 12 // 4 KiB
	largestKept  = 23 // 8 MiB
)

// kept holds the free payloads by power. A payload is stored as a pointer to its first byte, because
// putting a slice into a pool would allocate.
var kept [largestKept + 1]sync.Pool

// allocate returns size bytes with arbitrary contents, for the payload of a message.
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

// Release takes back a payload that is no longer used.
func Release(payload []byte) {
	power := bits.Len(uint(cap(payload))) - 1
	if power >= smallestKept && power <= largestKept && cap(payload) == 1<<power {
		kept[power].Put(unsafe.SliceData(payload))
	}
}

// Duplicate returns a copy of payload.
func Duplicate(payload []byte) []byte {
	b := allocate(len(payload))
	copy(b, payload)
	return b
}

// Short payloads that wait to be acknowledged come from the engine's own pool, guarded by its mutex.
// A sync.Pool of slices would allocate whenever a slice is returned to it.
const (
	shortPayload = 1 << 10 // bytes
	shortsKept   = 128     // two batches of messages that are acknowledged together
)

// A payloadPool is that pool. For longer payloads it uses the pools of all engines. It needs nothing
// from the engine.
type payloadPool struct {
	shorts [][]byte
	made   int // number of buffers that room has made
}

// lendOut returns an empty slice with room for size bytes, which the caller later passes to
// giveBack.
func (p *payloadPool) lendOut(size int) []byte {
	if size > shortPayload {
		return allocate(size)[:0]
	}
	if last := len(p.shorts) - 1; last >= 0 {
		b := p.shorts[last]
		p.shorts = p.shorts[:last]
		return b
	}
	return make([]byte, 0, shortPayload)
}

// copyOf returns a copy of payload, for a message that is kept.
func (p *payloadPool) copyOf(payload []byte) []byte {
	b := p.room(len(payload))
	copy(b, payload)
	return b
}

// room returns size bytes with arbitrary contents. Short slices come from the pool, unless it has
// lent out too many, because each has more room than requested.
func (p *payloadPool) room(size int) []byte {
	if size == 0 || size > shortPayload {
		return allocate(size)
	}
	if last := len(p.shorts) - 1; last >= 0 {
		b := p.shorts[last]
		p.shorts = p.shorts[:last]
		return b[:size]
	}
	if p.made < shortsKept {
		p.made++
		return make([]byte, size, shortPayload)
	}
	return make([]byte, size)
}

// giveBack takes back a slice from lendOut or room.
func (p *payloadPool) giveBack(b []byte) {
	switch {
	case cap(b) != shortPayload:
		Release(b)
	case len(p.shorts) < shortsKept:
		p.shorts = append(p.shorts, b[:0])
	}
}

// Reusable reports whether the memory of a payload from a pool is worth giving back.
func Reusable(payload []byte) bool {
	return len(payload) >= 1<<smallestKept || len(payload) > 0 && cap(payload) == shortPayload
}
