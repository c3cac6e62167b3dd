package channel

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A ShmReceiver is the reading end of a channel through shared memory. Polling callers use Ready and
// TryReceive; Receive makes it a blocking Receiver. Only one goroutine at a time may use a
// ShmReceiver, except that another goroutine may call Close.
//
// A ShmReceiver does not detect that the other process has ended without closing: no more frames
// arrive. A view reports the end.
type ShmReceiver struct {
	*ring
	own, other *Bell

	cellsTaken, bulkTaken uint64 // position of the next record
	cellsFreed, bulkFreed uint64 // positions published to the sender

	frame frame.Frame // current frame
	begun bool        // frame has its header and its buffer
	got   uint64      // payload bytes received so far
	err   error       // no more frames follow

	// State of direct reads from the sender's memory.
	allowed  Reading
	met      bool // the receiver has tried to read the sender's memory
	readable bool
	source   foreign
	proof    [proofSize]byte
}

// OpenShmReceiver opens the receiving end of a ring, which it maps. The caller still closes the
// file. own is the bell of this process, and other the bell of the sending process. A ring has only
// one receiver in its lifetime.
func OpenShmReceiver(ring *os.File, own, other *Bell) (*ShmReceiver, error) {
	r, err := openRing(ring)
	if err != nil {
		return nil, err
	}
	return newShmReceiver(r, own, other), nil
}

func newShmReceiver(r *ring, own, other *Bell) *ShmReceiver {
	return &ShmReceiver{ring: r, own: own, other: other}
}

// Ready reports whether TryReceive would find a part of a frame, an end, or corruption. It costs two
// loads, which hit the cache while no frame arrives.
func (r *ShmReceiver) Ready() bool {
	ready := r.cell(r.cellsTaken).stamp.Load() != stale(r.cellsTaken) || r.control.gone.Load() != 0
	runtime.KeepAlive(r)
	return ready
}

// Arrived reports whether TryReceive would find a part of a frame, or corruption, but does not
// detect that the sender has closed. It does half the work of Ready, for callers that poll very
// often.
func (r *ShmReceiver) Arrived() bool {
	arrived := r.cell(r.cellsTaken).stamp.Load() != stale(r.cellsTaken)
	runtime.KeepAlive(r)
	return arrived
}

// TryReceive takes the available data, and reports whether a frame is complete. If not, the next
// call continues with the frame. alloc returns the buffer for a payload. It is called once per
// frame, when the header has arrived, and must return Size bytes, which belong to the receiver until
// the frame is complete. The error is io.EOF after the sender closed between two frames. TryReceive
// never blocks and allocates nothing.
func (r *ShmReceiver) TryReceive(alloc func(frame.Header) []byte) (f frame.Frame, ok bool, err error) {
	for r.err == nil && !ok {
		c := r.cell(r.cellsTaken)
		if stamp := c.stamp.Load(); stamp != r.cellsTaken+1 {
			r.idle(stamp)
			break
		}
		if r.begun {
			r.err = r.take(c.extent().part)
		} else {
			ok, r.err = r.begin(c, alloc, &f)
		}
		if r.begun && r.got == r.frame.Size && r.err == nil {
			f, r.frame, r.begun, ok = r.frame, frame.Frame{}, false, true
		}
	}
	runtime.KeepAlive(r)
	return f, ok, r.err
}

// begin takes the first record of a frame. If the frame is entirely in c, begin stores it in f and
// returns true.
func (r *ShmReceiver) begin(c *cell, alloc func(frame.Header) []byte, f *frame.Frame) (whole bool, err error) {
	if !r.met {
		r.meet()
	}
	header := c.header // a copy, so that it cannot change after the check
	size, part := uint64(header.length), uint32(0)
	if header.length == inBulk {
		e := *c.extent()
		size, part = uint64(e.size), e.part
	} else if size > inlineSize {
		return false, fmt.Errorf("channel: shared ring is corrupt: payload of %d bytes in a cell, at most %d fit", size, inlineSize)
	}
	h, err := header.unpack(size)
	if err != nil {
		return false, err
	}
	payload := alloc(h)
	if uint64(len(payload)) != size {
		return false, fmt.Errorf("channel: buffer of %d bytes for a payload of %d", len(payload), size)
	}
	if header.length == inBulk {
		r.frame, r.begun, r.got = frame.Frame{Header: h, Payload: payload}, true, 0
		return false, r.take(part)
	}
	copy(payload, c.inline[:])
	r.free(0)
	f.Header, f.Payload = h, payload
	return true, nil
}

// take copies the part of the payload that a record stores in the bulk.
func (r *ShmReceiver) take(bytes uint32) error {
	part := uint64(bytes)
	if part == 0 || part > r.frame.Size-r.got || part > uint64(len(r.bulk)) {
		return fmt.Errorf("channel: shared ring is corrupt: %d bytes follow %d of %d", part, r.got, r.frame.Size)
	}
	r.read(r.bulkTaken, r.frame.Payload[r.got:r.got+part])
	r.got += part
	r.free(bulkLength(part))
	return nil
}

// free releases the space of a record with n bytes in the bulk. It publishes freed space only in
// portions, so that this seldom causes a cache miss at the sender.
func (r *ShmReceiver) free(n uint64) {
	r.cellsTaken++
	r.bulkTaken += n
	if r.cellsTaken-r.cellsFreed < cellCount/8 && r.bulkTaken-r.bulkFreed < uint64(len(r.bulk))/8 {
		return
	}
	r.cellsFreed, r.bulkFreed = r.cellsTaken, r.bulkTaken
	r.control.freeCells.Store(r.cellsFreed)
	r.control.freeBulk.Store(r.bulkFreed)
	if r.granted() {
		r.other.ring()
	}
}

// granted reports whether the space that the sender requested is available. A sender that stores a
// request after this check then checks the space itself.
func (r *ShmReceiver) granted() bool {
	granted := false
	if want := r.control.wantCells.Load(); want != 0 && r.cellsFreed-want < 1<<63 {
		r.control.wantCells.Store(0)
		granted = true
	}
	if want := r.control.wantBulk.Load(); want != 0 && r.bulkFreed-want < 1<<63 {
		r.control.wantBulk.Store(0)
		granted = true
	}
	return granted
}

// idle interprets the stamp of the next cell, which is not the stamp of a published record. It sets
// r.err if no more frames follow.
func (r *ShmReceiver) idle(stamp uint64) {
	gone := r.control.gone.Load()
	switch {
	case stamp != stale(r.cellsTaken):
		r.err = fmt.Errorf("channel: shared ring is corrupt: record %d has stamp %d", r.cellsTaken, stamp)
	case gone&receiverGone != 0:
		r.err = fmt.Errorf("channel: receive: %w", net.ErrClosed)
	case gone == 0:
	case r.cell(r.cellsTaken).stamp.Load() != stamp: // the record was published before the sender closed
	case r.begun:
		r.err = io.ErrUnexpectedEOF
	default:
		r.err = io.EOF
	}
}
