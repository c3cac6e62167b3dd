package channel

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A pipeRing is the shared memory of a pipe. It contains the bytes that the writer has stored and
// the reader has not yet taken. Either end may be untrusted and change the memory at any time. Each
// end therefore reads the position of the other end once and checks it, and keeps its own position
// in private memory.
//
//	0       one page of positions and wake-up requests, a cache line for each field
//	4096    the bytes, at their position modulo a power of two
type pipeRing struct {
	control *pipeControl
	bytes   []byte
	memory  *memory
}

// pipeControl contains the positions of the two ends, and their requests to be woken. Positions
// count bytes since the beginning.
type pipeControl struct {
	filled atomic.Uint64 // written by the writer: bytes before it are available
	_      [cacheLine - 8]byte
	taken  atomic.Uint64 // written by the reader: bytes before it may be overwritten
	_      [cacheLine - 8]byte
	// readerSleeps is nonzero while the reader requests to be woken by the next bytes. The writer
	// resets it to 0 when it wakes the reader.
	readerSleeps atomic.Uint32
	_            [cacheLine - 4]byte
	// writerWants is the value of taken at which the writer requests to be woken, or 0.
	writerWants atomic.Uint64
}

// pipeCapacity is the number of bytes that a pipe holds. At this size, the ends seldom wait for
// each other within a long message, and the contents stay in the cache.
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

// at returns the bytes from position on, at most n and not beyond the end of the memory.
func (r *pipeRing) at(position, n uint64) []byte {
	start := position & uint64(len(r.bytes)-1)
	return r.bytes[start:min(start+n, uint64(len(r.bytes)))]
}

// A pipeInput is the writer's side of a ring.
type pipeInput struct {
	*pipeRing
	filled uint64
}

// room returns the free bytes that can be written now. The slice is empty if the ring is full.
func (w *pipeInput) room() ([]byte, error) {
	taken := w.control.taken.Load()
	if w.filled-taken > uint64(len(w.bytes)) {
		return nil, fmt.Errorf("channel: shared pipe is corrupt: %d of %d bytes taken", taken, w.filled)
	}
	return w.at(w.filled, uint64(len(w.bytes))-(w.filled-taken)), nil
}

// publish makes n bytes of the slice returned by room available to the reader, and reports whether
// the reader must be woken.
func (w *pipeInput) publish(n int) (wake bool) {
	w.filled += uint64(n)
	w.control.filled.Store(w.filled)
	return w.control.readerSleeps.Load() != 0 && w.control.readerSleeps.Swap(0) != 0
}

// want requests that the reader wake the writer when a quarter of a full ring is free. The caller
// must check for room again before it waits.
func (w *pipeInput) want() {
	w.control.writerWants.Store(w.filled - uint64(len(w.bytes))/4*3)
}

// A pipeOutput is the reader's side of a ring.
type pipeOutput struct {
	*pipeRing
	taken uint64
}

// ready reports whether peek returns bytes or an error.
func (r *pipeOutput) ready() bool { return r.control.filled.Load() != r.taken }

// peek returns the available bytes, at most n, or none. The writer may change them at any time.
func (r *pipeOutput) peek(n int) ([]byte, error) {
	there := r.control.filled.Load() - r.taken
	if there > uint64(len(r.bytes)) {
		return nil, fmt.Errorf("channel: shared pipe is corrupt: %d bytes in a buffer of %d", there, len(r.bytes))
	}
	return r.at(r.taken, min(there, uint64(n))), nil
}

// release frees n bytes, and reports whether the writer must be woken.
func (r *pipeOutput) release(n int) (wake bool) {
	r.taken += uint64(n)
	r.control.taken.Store(r.taken)
	want := r.control.writerWants.Load()
	return want != 0 && r.taken-want < 1<<63 && r.control.writerWants.Swap(0) != 0
}

// doze requests that the writer wake the reader at the next bytes. The caller must check for bytes
// again before it waits.
func (r *pipeOutput) doze() { r.control.readerSleeps.Store(1) }
