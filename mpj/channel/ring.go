package channel

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A ring is the shared memory of one shm channel, which transports frames from one process to
// another. The other process is untrusted and may change the memory at any time, so each value is
// read once and checked.
//
//	0          one control page; each writer has its own cache line
//	4096       cells: the beginnings of records; a small frame is stored entirely in its cell
//	36864      the bulk: payload bytes that do not fit into a cell
//
// A writer publishes a cell by its stamp, which is the position of the cell plus one. The stamp
// distinguishes new records from those of the previous lap, so cells need not be cleared; see
// cell.go.
type ring struct {
	control *control
	cells   *[cellCount]cell
	bulk    []byte // length is a power of two
	memory  *memory
}

// RingCapacity is the recommended capacity of a ring, in bytes. The copies of both ends stay in the
// second-level cache, and four parts of a long payload fit at the same time. With capacities from 64
// KiB to 1 MiB, the measured throughput is 10.8 GB/s for payloads of 1 MiB, and 10.2 GB/s, the speed
// of a copy, for payloads of 4 MiB. Larger rings are not faster, and cost memory. On AMD, where
// payloads bypass the cache of the sender (see copyShared), 256 KiB are 5 % faster and 64 KiB are
// 20 % slower.
const RingCapacity = 128 << 10

const (
	// cacheLine is twice the actual length, because processors fetch lines in pairs.
	cacheLine   = 128
	cellCount   = 256
	controlSize = 4096
	bulkOffset  = controlSize + cellCount*cellSize
	// Payloads begin at multiples of bulkAlign, so that copies are aligned and no two payloads
	// share a cache line.
	bulkAlign = 64

	minRing = 1 << 12
	maxRing = 1 << 30
)

// control contains the positions of the two ends.
type control struct {
	// Written by the receiver. Records and bytes before these positions have been taken.
	freeCells, freeBulk atomic.Uint64
	_                   [cacheLine - 16]byte
	// Written by a sender that needs room. The receiver rings the sender's bell when freeCells or
	// freeBulk reaches the position. Zero means no request.
	wantCells, wantBulk atomic.Uint64
	_                   [cacheLine - 16]byte
	// Written by an end that closes. It is a futex word for waiters.
	gone  atomic.Uint32
	_     [cacheLine - 4]byte
	hello hello
}

// Flags in control.gone.
const (
	senderGone   = 1
	receiverGone = 2
)

// The control fits into its page.
var _ [controlSize - unsafe.Sizeof(control{})]byte

// checkCapacity returns an error if a ring cannot have a bulk of this length.
func checkCapacity(capacity int) error {
	if capacity < minRing || capacity > maxRing || bits.OnesCount(uint(capacity)) != 1 {
		return fmt.Errorf("channel: ring of %d bytes: want a power of two from %d to %d", capacity, minRing, maxRing)
	}
	return nil
}

// newRing returns the ring in m, which is aligned to 8 bytes.
func newRing(m *memory) (*ring, error) {
	capacity := len(m.bytes) - bulkOffset
	if err := checkCapacity(capacity); err != nil {
		return nil, err
	}
	return &ring{
		control: (*control)(unsafe.Pointer(&m.bytes[0])),
		cells:   (*[cellCount]cell)(unsafe.Pointer(&m.bytes[controlSize])),
		bulk:    m.bytes[bulkOffset:],
		memory:  m,
	}, nil
}

// cell returns the cell at a position.
func (r *ring) cell(position uint64) *cell { return &r.cells[position%cellCount] }

// write copies b into the bulk at a position, and wraps around at the end of the bulk. b is not
// longer than the bulk.
func (r *ring) write(position uint64, b []byte) {
	n := copyShared(r.bulk[position&uint64(len(r.bulk)-1):], b)
	copyShared(r.bulk, b[n:])
}

// read copies len(b) bytes at a position out of the bulk.
func (r *ring) read(position uint64, b []byte) {
	n := copy(b, r.bulk[position&uint64(len(r.bulk)-1):])
	copy(b[n:], r.bulk)
}

// bulkLength returns the space that a part of n bytes takes in the bulk.
func bulkLength(n uint64) uint64 { return (n + bulkAlign - 1) &^ (bulkAlign - 1) }

// stale returns the stamp of the cell at position before it is published.
func stale(position uint64) uint64 {
	if position < cellCount {
		return 0
	}
	return position + 1 - cellCount
}
