package channel

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A pipeRing is the shared memory of a pipe: bytes that a writer has put in and
// a reader has not yet taken. Either may be a stranger, who changes anything at
// any time: positions are read once and checked, and each end believes only its
// own.
//
//	0       one page of positions and wishes, a cache line for each that writes
//	4096    the bytes, at their position modulo a power of two
type pipeRing struct {
	control *pipeControl
	bytes   []byte
	memory  *memory
}

// pipeControl says how far the two ends are, and who sleeps. Positions count
// bytes since the beginning.
type pipeControl struct {
	filled atomic.Uint64 // by the writer: bytes before are there
	_      [cacheLine - 8]byte
	taken  atomic.Uint64 // by the reader: bytes before may be written over
	_      [cacheLine - 8]byte
	// readerSleeps is not 0 when the reader wants to be woken by the next bytes.
	// Whoever wakes it makes it 0.
	readerSleeps atomic.Uint32
	_            [cacheLine - 4]byte
	// writerWants is the position of taken at which the writer wants to be woken,
	// or 0.
	writerWants atomic.Uint64
}

// pipeCapacity is how many bytes a pipe holds. Both ends then seldom wait for
// each other within a long message, and what is in it stays in the cache.
const pipeCapacity = 256 << 10

func newPipeRing(m *memory) (*pipeRing, error) {
	capacity := len(m.bytes) - controlSize
	if capacity < minRing || bits.OnesCount(uint(capacity)) != 1 {
		return nil, fmt.Errorf("channel: pipe of %d bytes: want a power of two from %d", capacity, minRing)
	}
	return &pipeRing{
		control: (*pipeControl)(unsafe.Pointer(&m.bytes[0])),
		bytes:   m.bytes[controlSize:],
		memory:  m,
	}, nil
}

// at returns the bytes from a position, at most n and no further than the end of
// the memory.
func (r *pipeRing) at(position, n uint64) []byte {
	start := position & uint64(len(r.bytes)-1)
	return r.bytes[start:min(start+n, uint64(len(r.bytes)))]
}

// A pipeInput is the writer's side of a ring.
type pipeInput struct {
	*pipeRing
	filled uint64
}

// room returns where bytes can be written now; nothing when the ring is full.
func (w *pipeInput) room() ([]byte, error) {
	taken := w.control.taken.Load()
	if w.filled-taken > uint64(len(w.bytes)) {
		return nil, fmt.Errorf("channel: shared pipe is corrupt: %d of %d bytes taken", taken, w.filled)
	}
	return w.at(w.filled, uint64(len(w.bytes))-(w.filled-taken)), nil
}

// publish gives the reader n bytes of what room returned, and reports whether it
// has to be woken.
func (w *pipeInput) publish(n int) (wake bool) {
	w.filled += uint64(n)
	w.control.filled.Store(w.filled)
	return w.control.readerSleeps.Load() != 0 && w.control.readerSleeps.Swap(0) != 0
}

// want asks to be woken when a quarter of a full ring is free. Look for room once
// more before waiting.
func (w *pipeInput) want() {
	w.control.writerWants.Store(w.filled - uint64(len(w.bytes))/4*3)
}

// A pipeOutput is the reader's side of a ring.
type pipeOutput struct {
	*pipeRing
	taken uint64
}

// ready reports whether peek finds anything, be it corruption.
func (r *pipeOutput) ready() bool { return r.control.filled.Load() != r.taken }

// peek returns bytes that are there, at most n, or nothing. Their writer may
// change them until they are taken, and after.
func (r *pipeOutput) peek(n int) ([]byte, error) {
	there := r.control.filled.Load() - r.taken
	if there > uint64(len(r.bytes)) {
		return nil, fmt.Errorf("channel: shared pipe is corrupt: %d bytes in %d", there, len(r.bytes))
	}
	return r.at(r.taken, min(there, uint64(n))), nil
}

// release gives the room of n bytes back, and reports whether the writer has to be
// woken.
func (r *pipeOutput) release(n int) (wake bool) {
	r.taken += uint64(n)
	r.control.taken.Store(r.taken)
	want := r.control.writerWants.Load()
	return want != 0 && r.taken-want < 1<<63 && r.control.writerWants.Swap(0) != 0
}

// doze asks to be woken by the next bytes. Look once more before waiting.
func (r *pipeOutput) doze() { r.control.readerSleeps.Store(1) }
