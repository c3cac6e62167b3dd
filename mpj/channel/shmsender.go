package channel

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A ShmSender is the writing end of a channel through shared memory. Polling callers use TrySend;
// Send and Broken make it a blocking Sender. Only one goroutine at a time may use a ShmSender,
// except that another goroutine may call Close.
//
// A ShmSender does not detect that the other process has ended. It then accepts frames until the
// ring is full, and a caller that waits for space waits until a view reports the end.
type ShmSender struct {
	*ring
	own, other *Bell

	cellsEnd, bulkEnd   uint64 // position of the next record
	freeCells, freeBulk uint64 // last values read from control
	step                uint64 // longest part of a payload in one record

	begun bool   // the header of the current frame is in the ring
	sent  uint64 // payload bytes of the current frame in the ring
	err   error  // set if the ring is corrupt

	watch watcher
}

// streamStep is the longest part of a payload that is published at once, in bytes. The receiver
// copies one part out of the ring while the sender copies the next part in. Shorter parts overlap
// sooner, and longer parts cost less to publish; 16 to 64 KiB perform equally.
const streamStep = 32 << 10

// OpenShmSender opens the sending end of a ring, which it maps. The caller still closes the file.
// own is the bell of this process, and other the bell of the receiving process. A ring has only one
// sender in its lifetime: the next channel between the same two processes has a new ring.
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

// TrySend moves as much of f into the ring as fits, and reports whether all of f is in the ring. If
// not, the caller must call TrySend again with the same frame, after other work, or when own has
// been rung because space is free. TrySend never blocks and allocates nothing.
func (s *ShmSender) TrySend(f frame.Frame) (done bool, err error) {
	switch {
	case !s.usable(&f):
		err = s.unusable(&f)
	case f.Size > inlineSize:
		done, err = s.sendLong(&f)
	case !s.room(0):
		err = s.err
	default:
		c := s.cell(s.cellsEnd)
		copy(c.inline[:], f.Payload)
		c.put(&f.Header, uint16(f.Size))
		s.publish(c)
		done = true
	}
	runtime.KeepAlive(s)
	return done, err
}

// sendLong is TrySend for a frame whose payload does not fit into a cell. It writes the cell after the
// payload, immediately before the stamp: otherwise the receiver, which polls the cell, takes its line
// back in between, and the stamp costs another cache miss.
func (s *ShmSender) sendLong(f *frame.Frame) (done bool, err error) {
	for s.sent < f.Size {
		n := min(f.Size-s.sent, s.step)
		if !s.room(bulkLength(n)) {
			return false, s.err
		}
		s.write(s.bulkEnd, f.Payload[s.sent:s.sent+n])
		c := s.cell(s.cellsEnd)
		if !s.begun {
			c.put(&f.Header, inBulk)
			s.begun = true
		}
		*c.extent() = extent{size: uint32(f.Size), part: uint32(n)}
		s.sent += n
		s.bulkEnd += bulkLength(n)
		s.publish(c)
	}
	s.begun, s.sent = false, 0
	return true, nil
}

// usable reports whether f can be sent. It is inlined, unlike unusable.
func (s *ShmSender) usable(f *frame.Frame) bool {
	return s.err == nil && s.control.gone.Load() == 0 && uint64(len(f.Payload)) == f.Size &&
		f.Size <= frame.MaxPayload && (!s.begun || s.sent < f.Size)
}

// unusable returns the reason why f cannot be sent.
func (s *ShmSender) unusable(f *frame.Frame) error {
	switch {
	case s.err != nil:
		return s.err
	case s.control.gone.Load() != 0:
		return fmt.Errorf("channel: send: %w", net.ErrClosed)
	case uint64(len(f.Payload)) != f.Size || f.Size > frame.MaxPayload:
		return fmt.Errorf("channel: frame with a payload of %d bytes has size %d, at most %d are allowed", len(f.Payload), f.Size, uint64(frame.MaxPayload))
	}
	return fmt.Errorf("channel: send of %d bytes, but only %d bytes of the previous frame have been sent", f.Size, s.sent)
}

// publish makes the record in c available to the receiver. To publish several records with one store
// and one look at the bell would not be faster, because the receiver takes longer than the sender.
// Windows of 64 frames of 8 bytes took 65 to 71 ns per frame with 4 to 16 records per store, and 67 to
// 72 ns with one, on near cores of an AMD EPYC (see nonTemporal), and 160 to 175 ns on distant cores
// in all cases.
func (s *ShmSender) publish(c *cell) {
	s.cellsEnd++
	c.stamp.Store(s.cellsEnd)
	s.other.ring()
}

// room reports whether a cell, and n bytes in the bulk, are free. If not, the receiver will ring
// when half of the cells, or half of the bulk, is free.
func (s *ShmSender) room(n uint64) bool {
	if s.fits(n) || s.look() && s.fits(n) {
		return true
	}
	if s.err != nil {
		return false
	}
	if s.cellsEnd-s.freeCells >= cellCount {
		setWanted(&s.control.wantCells, s.cellsEnd-cellCount/2)
	} else {
		setWanted(&s.control.wantBulk, s.bulkEnd-uint64(len(s.bulk))/2)
	}
	return s.look() && s.fits(n)
}

// setWanted stores the position at which the receiver must ring, unless it is already stored.
func setWanted(want *atomic.Uint64, position uint64) {
	if want.Load() != position {
		want.Store(position)
	}
}

func (s *ShmSender) fits(n uint64) bool {
	return s.cellsEnd-s.freeCells < cellCount && s.bulkEnd-s.freeBulk+n <= uint64(len(s.bulk))
}

// look reads the receiver's position. It fails if the position is beyond the sent data.
func (s *ShmSender) look() bool {
	cells, bulk := s.control.freeCells.Load(), s.control.freeBulk.Load()
	if s.cellsEnd-cells > cellCount || s.bulkEnd-bulk > uint64(len(s.bulk)) {
		s.err = fmt.Errorf("channel: shared ring is corrupt: %d of %d records and %d of %d bytes taken", cells, s.cellsEnd, bulk, s.bulkEnd)
		return false
	}
	s.freeCells, s.freeBulk = cells, bulk
	return true
}
