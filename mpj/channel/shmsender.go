package channel

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A ShmSender is the writing end of a channel through shared memory. Whoever
// polls it uses TrySend; Send and Broken make it a Sender for those who block.
// One goroutine at a time may use it; Close may be called from another.
//
// It does not notice that the other process has ended: frames then go until
// the ring is full, and who waits for room waits until a view says why.
type ShmSender struct {
	*ring
	own, other *Bell

	cellsEnd, bulkEnd   uint64 // where the next record goes
	freeCells, freeBulk uint64 // what control said when it was last looked at
	step                uint64 // longest part of a payload in one record

	begun bool   // the frame under way has its header in the ring
	sent  uint64 // bytes of its payload in the ring
	err   error  // the ring is corrupt

	watch watcher
}

// streamStep is the longest part of a payload that is published at once, in
// bytes. The receiver copies one out while the next is copied in: shorter ones
// overlap sooner, longer ones cost less to announce: 16 to 64 KiB are alike.
const streamStep = 32 << 10

// OpenShmSender opens the sending end of a ring, which it maps; the caller
// still closes the file. own is the bell of this process, and other that of
// the receiving one. A ring has one sender in its life: the next channel
// between the same two has a ring of its own.
func OpenShmSender(ring *os.File, own, other *Bell) (*ShmSender, error) {
	r, err := openRing(ring)
	if err != nil {
		return nil, err
	}
	return newShmSender(r, own, other), nil
}

func newShmSender(r *ring, own, other *Bell) *ShmSender {
	s := &ShmSender{ring: r, own: own, other: other, step: min(streamStep, uint64(len(r.bulk))/4)}
	s.greet()
	return s
}

// TrySend moves as much of f into the ring as there is room for, and reports
// whether that was all. If not, call it again with the same frame: after a
// look at other work, or when own was rung, which happens when there is room.
// It never blocks, and allocates nothing.
func (s *ShmSender) TrySend(f frame.Frame) (done bool, err error) {
	defer runtime.KeepAlive(s)
	if err := s.usable(f); err != nil {
		return false, err
	}
	if f.Size <= inlineSize {
		return s.sendInline(f)
	}
	for s.sent < f.Size {
		n := min(f.Size-s.sent, s.step)
		if !s.room(bulkLength(n)) {
			return false, s.err
		}
		c := s.cell(s.cellsEnd)
		if !s.begun {
			frame.PutHeader(&c.header, &f.Header)
			s.begun = true
		}
		s.write(s.bulkEnd, f.Payload[s.sent:s.sent+n])
		s.sent += n
		s.publish(c, n)
	}
	s.begun, s.sent = false, 0
	return true, nil
}

// usable returns what forbids to send f.
func (s *ShmSender) usable(f frame.Frame) error {
	switch {
	case s.err != nil:
		return s.err
	case s.control.gone.Load() != 0:
		return fmt.Errorf("channel: send: %w", net.ErrClosed)
	case uint64(len(f.Payload)) != f.Size || f.Size > frame.MaxPayload:
		return fmt.Errorf("channel: frame with a payload of %d bytes says %d, at most %d go", len(f.Payload), f.Size, uint64(frame.MaxPayload))
	case s.begun && s.sent >= f.Size:
		return fmt.Errorf("channel: send of %d bytes, but %d of the frame before are still to go", f.Size, s.sent)
	}
	return nil
}

func (s *ShmSender) sendInline(f frame.Frame) (done bool, err error) {
	if !s.room(0) {
		return false, s.err
	}
	c := s.cell(s.cellsEnd)
	frame.PutHeader(&c.header, &f.Header)
	copy(c.inline[:], f.Payload)
	s.publish(c, 0)
	return true, nil
}

// publish gives the receiver the record that begins in c.
func (s *ShmSender) publish(c *cell, part uint64) {
	c.part = part
	s.cellsEnd++
	s.bulkEnd += bulkLength(part)
	c.stamp.Store(s.cellsEnd)
	s.other.Ring()
}

// room reports whether there is a free cell and n free bytes in the bulk. If
// not, the receiver will ring when half of what is lacking is free again.
func (s *ShmSender) room(n uint64) bool {
	if s.fits(n) || s.look() && s.fits(n) {
		return true
	}
	if s.err != nil {
		return false
	}
	if s.cellsEnd-s.freeCells >= cellCount {
		wish(&s.control.wantCells, s.cellsEnd-cellCount/2)
	} else {
		wish(&s.control.wantBulk, s.bulkEnd-uint64(len(s.bulk))/2)
	}
	return s.look() && s.fits(n)
}

// wish says where the receiver is to ring; not again while it still says so.
func wish(want *atomic.Uint64, position uint64) {
	if want.Load() != position {
		want.Store(position)
	}
}

func (s *ShmSender) fits(n uint64) bool {
	return s.cellsEnd-s.freeCells < cellCount && s.bulkEnd-s.freeBulk+n <= uint64(len(s.bulk))
}

// look learns what the receiver has taken. It fails for a receiver that says
// it has taken what it was not given.
func (s *ShmSender) look() bool {
	cells, bulk := s.control.freeCells.Load(), s.control.freeBulk.Load()
	if s.cellsEnd-cells > cellCount || s.bulkEnd-bulk > uint64(len(s.bulk)) {
		s.err = fmt.Errorf("channel: shared ring is corrupt: %d of %d records and %d of %d bytes taken", cells, s.cellsEnd, bulk, s.bulkEnd)
		return false
	}
	s.freeCells, s.freeBulk = cells, bulk
	return true
}
