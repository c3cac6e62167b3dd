package channel

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

const (
	// cellSize is two lines. With cells of one line, where longer payloads are in the bulk, a message
	// of 1 byte was 5 % faster between two engines on an AMD EPYC, but one of 64 bytes 18 % slower.
	cellSize = cacheLine
	// inlineSize is the longest payload that fits into a cell.
	inlineSize = cellSize - 32
)

// A cell begins a record: a frame, or a further part of one.
//
//	0    stamp
//	8    kind, sync, length, rank, context, tag, seq: the packed header, in the first record of a frame
//	32   the payload, or in a record of a longer frame: size, part
//
// A frame with a payload of up to 32 bytes costs the receiver one cache miss, because the payload
// shares a line of 64 bytes with the stamp and the packed header.
type cell struct {
	stamp  atomic.Uint64
	header packed
	inline [inlineSize]byte
}

// A packed header contains all fields of a frame.Header except the size of a payload in the bulk.
// Its fields have the byte order of the machine, which both processes share.
type packed struct {
	kind    frame.Kind
	sync    uint8  // 0 or 1
	length  uint16 // of the payload in the cell, or inBulk
	rank    uint32
	context uint32
	tag     int32
	seq     uint64
}

// inBulk is the length in a packed header whose payload is in the bulk.
const inBulk = 1<<16 - 1

// An extent follows the packed header in each record with payload bytes in the bulk.
type extent struct {
	size uint32 // of the payload of the frame; ignored except in its first record
	part uint32 // number of payload bytes of this record
}

// The fields of a cell have the documented places.
var (
	_ [cellSize - unsafe.Sizeof(cell{})]byte
	_ [unsafe.Sizeof(cell{}) - cellSize]byte
	_ [32 - unsafe.Offsetof(cell{}.inline)]byte
)

// extent returns the place of the extent of a record.
func (c *cell) extent() *extent { return (*extent)(unsafe.Pointer(&c.inline)) }

// put stores the header h of a frame. length is the length of its payload in the cell, or inBulk.
func (c *cell) put(h *frame.Header, length uint16) {
	p := &c.header
	p.kind, p.sync, p.length, p.rank = h.Kind, 0, length, h.Rank
	if h.Sync {
		p.sync = 1
	}
	p.context, p.tag, p.seq = h.Context, h.Tag, h.Seq
}

// unpack returns the header of a frame with a payload of size bytes. It rejects an unknown kind and
// an unknown flag.
func (p *packed) unpack(size uint64) (h frame.Header, err error) {
	if !p.kind.Known() || p.sync > 1 {
		return h, fmt.Errorf("channel: shared ring is corrupt: frame of kind %d with flags %#x", p.kind, p.sync)
	}
	return frame.Header{
		Kind: p.kind, Sync: p.sync == 1, Context: p.context, Rank: p.rank, Tag: p.tag, Seq: p.seq, Size: size,
	}, nil
}
