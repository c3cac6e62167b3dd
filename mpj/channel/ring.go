package channel

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A ring is the shared memory of one shm channel: what one process sends to
// one other. Everything in it may change at any time and to anything, for the
// other process is a stranger: what is read is read once and checked.
//
//	0          one control page; each writer has a cache line of its own
//	4096       cells: where records begin; a small frame is there as a whole
//	36864      the bulk: the bytes of payloads that do not fit into a cell
//
// A cell is published by its stamp, which is its position plus one. So
// whatever the last lap left there is told from what is new, nothing needs
// wiping, and a small frame costs the receiver one cache miss: the stamp it
// looks at comes with the header and the first bytes of the payload.
type ring struct {
	control *control
	cells   *[cellCount]cell
	bulk    []byte // a power of two long
	memory  *memory
}

// RingCapacity is the capacity to give a ring, in bytes: the copies of both
// ends stay in the second-level cache, and four parts of a long payload are
// under way. Measured from 64 KiB to 1 MiB, a payload of 1 MiB goes at 10.8
// GB/s, and one of 4 MiB at 10.2, which is what copying it takes; the curve is
// flat, a larger ring only costs memory.
const RingCapacity = 128 << 10

const (
	// cacheLine is twice what processors have, for they fetch lines in pairs.
	cacheLine = 128
	cellCount = 256
	// inlineSize is the longest payload that goes into a cell.
	inlineSize  = cacheLine - 16 - frame.HeaderSize
	controlSize = 4096
	bulkOffset  = controlSize + cellCount*cacheLine
	// Payloads begin at multiples of bulkAlign, so that copies are aligned and
	// two of them share no cache line.
	bulkAlign = 64

	minRing = 1 << 12
	maxRing = 1 << 30
)

// control says how far the two ends are.
type control struct {
	// Written by the receiver: everything before has been taken.
	freeCells, freeBulk atomic.Uint64
	_                   [cacheLine - 16]byte
	// Written by a sender that lacks room: ring its bell when freeCells or
	// freeBulk gets there. 0 is no wish.
	wantCells, wantBulk atomic.Uint64
	_                   [cacheLine - 16]byte
	// Written by an end that closes; a futex word for those who wait for it.
	gone  atomic.Uint32
	_     [cacheLine - 4]byte
	hello hello
}

// Who has closed, in control.gone.
const (
	senderGone   = 1
	receiverGone = 2
)

// A cell begins a record: a frame, or a further part of one.
type cell struct {
	stamp atomic.Uint64
	part  uint64 // bytes of the payload that this record has in the bulk
	// header is that of the frame, in the record that begins it. A payload of
	// up to inlineSize bytes follows it, and then part is 0.
	header [frame.HeaderSize]byte
	inline [inlineSize]byte
}

// A cell is two lines of 64 bytes and the control fits into its page.
var (
	_ [cacheLine - unsafe.Sizeof(cell{})]byte
	_ [unsafe.Sizeof(cell{}) - cacheLine]byte
	_ [controlSize - unsafe.Sizeof(control{})]byte
)

// checkCapacity refuses a length of the bulk that rings do not have.
func checkCapacity(capacity int) error {
	if capacity < minRing || capacity > maxRing || bits.OnesCount(uint(capacity)) != 1 {
		return fmt.Errorf("channel: ring of %d bytes: want a power of two from %d to %d", capacity, minRing, maxRing)
	}
	return nil
}

// newRing lays a ring over m, which is aligned to 8 bytes.
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

// cell returns the cell of a position.
func (r *ring) cell(position uint64) *cell { return &r.cells[position%cellCount] }

// write copies b into the bulk at a position, around its end if need be. b is
// not longer than the bulk.
func (r *ring) write(position uint64, b []byte) {
	n := copy(r.bulk[position&uint64(len(r.bulk)-1):], b)
	copy(r.bulk, b[n:])
}

// read copies len(b) bytes at a position out of the bulk.
func (r *ring) read(position uint64, b []byte) {
	n := copy(b, r.bulk[position&uint64(len(r.bulk)-1):])
	copy(b[n:], r.bulk)
}

// bulkLength returns how much of the bulk a part of n bytes takes.
func bulkLength(n uint64) uint64 { return (n + bulkAlign - 1) &^ (bulkAlign - 1) }

// stale returns the stamp that a cell has before it is published at position.
func stale(position uint64) uint64 {
	if position < cellCount {
		return 0
	}
	return position + 1 - cellCount
}
