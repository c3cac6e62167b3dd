package channel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A long payload need not go through the ring: the receiver may read it out of
// the sender's memory, with one copy where the ring has two. Who may read whom is
// up to the system, and is tried when the first frame arrives:
//
//	sender     its process number, and where it has mapped the ring -> hello
//	receiver   16 random bytes -> proof      reads them at the sender's address
//	           the same?
//
// Only a process that has this very ring can show the proof. It is read again
// with every piece of a payload, in one system call, which looks into one memory
// only: so a number that meanwhile names another process yields nothing.

// ErrUnreadable is the error of a read of memory that this process cannot, or can
// no longer, look into: the payload has to come through the ring.
var ErrUnreadable = errors.New("memory of the other process cannot be read")

// ReadMost bounds the bytes of one ReadMemory, which blocks its thread for a tenth
// of a millisecond then.
const ReadMost = 1 << 20

const proofSize = 16

// hello is where the two ends of a ring arrange who reads what.
type hello struct {
	pid, base atomic.Uint64 // written by the sender before its first record
	_         [cacheLine - 16]byte
	proof     [proofSize]byte // written by the receiver
	_         [cacheLine - proofSize]byte
}

// greet tells the receiver where this process has the ring.
func (s *ShmSender) greet() {
	allowReading()
	s.control.hello.base.Store(uint64(uintptr(unsafe.Pointer(s.control))))
	s.control.hello.pid.Store(uint64(os.Getpid()))
}

// Address returns where in this process payload is, for ReadMemory at the other
// end, or 0 if it is empty. It has to stay there: what a slice that is stored in
// the heap refers to is not on a stack, and all else stays where it is.
func (s *ShmSender) Address(payload []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(payload))))
}

// A Reading says whose memory a receiver may read.
type Reading uint8

// The values of Reading.
const (
	// ReadOthers is any process but the receiver's own: a sender that names that
	// would have it pass on what it alone knows.
	ReadOthers Reading = iota
	ReadNone
	// ReadAny is for senders that are part of this program.
	ReadAny
)

// SetReading says whose memory r may read. It comes before the first frame.
func (r *ShmReceiver) SetReading(allowed Reading) { r.allowed = allowed }

// meet finds out whether the sender's memory can be read.
func (r *ShmReceiver) meet() {
	r.met = true
	pid, base := r.control.hello.pid.Load(), r.control.hello.base.Load()
	own := uint64(os.Getpid())
	if pid == 0 || pid >= 1<<31 || r.allowed == ReadNone || r.allowed == ReadOthers && pid == own {
		return
	}
	rand.Read(r.proof[:])
	r.control.hello.proof = r.proof
	r.source = foreign{pid: int(pid), proof: uintptr(base) + unsafe.Offsetof(r.control.hello) + unsafe.Offsetof(r.control.hello.proof)}
	r.readable = r.proved()
}

// CanRead reports whether ReadMemory can succeed: not before a frame has
// arrived.
func (r *ShmReceiver) CanRead() bool { return r.readable }

// ReadMemory fills b, at most ReadMost bytes, with what the sender's process has
// at address, and had there while the sender was not closed. The error is
// ErrUnreadable when that process has ended or is out of reach, and another one
// when it has no such memory. b may be anything then.
func (r *ShmReceiver) ReadMemory(address uint64, b []byte) error {
	defer runtime.KeepAlive(r)
	switch {
	case !r.readable:
		return ErrUnreadable
	case len(b) > ReadMost:
		return fmt.Errorf("channel: read of %d bytes, at most %d go", len(b), ReadMost)
	case r.source.read(uintptr(address), b) == len(b)+proofSize && r.source.seen == r.proof:
	case r.proved():
		return fmt.Errorf("channel: process %d says that %d bytes are at %#x, where it has none", r.source.pid, len(b), address)
	default:
		r.readable = false
		return fmt.Errorf("channel: process %d: %w", r.source.pid, ErrUnreadable)
	}
	if r.control.gone.Load()&senderGone != 0 {
		return fmt.Errorf("channel: sender has closed: %w", ErrUnreadable)
	}
	return nil
}

// proved reports whether the sender's process is still the one that has the ring.
func (r *ShmReceiver) proved() bool {
	return r.source.read(0, nil) == proofSize && r.source.seen == r.proof
}
