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

// A long payload need not pass through the ring: the receiver may read the payload directly from the
// sender's memory, with one copy instead of two. The system determines whether this is allowed. The
// receiver tries to read when the first frame arrives:
//
//	sender     its process ID, and the address of its mapping of the ring -> hello
//	receiver   16 random bytes -> proof      reads them at the sender's address
//	           are they the same?
//
// Only a process that has mapped this ring can show the proof. The receiver reads the proof again
// with every piece of a payload, in one system call, which accesses only one process. So the
// receiver detects a process ID that meanwhile names another process.

// ErrUnreadable is the error of a read from memory that this process cannot access or can no longer
// access. The sender must then send the payload through the ring.
var ErrUnreadable = errors.New("memory of the other process cannot be read")

// ReadMost bounds the bytes read by one ReadMemory, which then blocks its thread for a tenth of a
// millisecond.
const ReadMost = 1 << 20

const proofSize = 16

// hello contains the data that the two ends of a ring exchange to enable direct reads.
type hello struct {
	pid, base atomic.Uint64 // written by the sender before its first record
	_         [cacheLine - 16]byte
	proof     [proofSize]byte // written by the receiver
	_         [cacheLine - proofSize]byte
}

// greet stores the process ID, and the address of the ring in this process, for the receiver.
func (s *ShmSender) greet() {
	allowReading()
	s.control.hello.base.Store(uint64(uintptr(unsafe.Pointer(s.control))))
	s.control.hello.pid.Store(uint64(os.Getpid()))
}

// Address returns the address of payload in this process, for ReadMemory at the other end, or 0 if
// payload is nil. The payload must not move. It does not move if it is not on a stack, as when a
// slice in the heap refers to it.
func (s *ShmSender) Address(payload []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(payload))))
}

// A Reading tells a receiver which processes' memory it may read.
type Reading uint8

// The values of Reading.
const (
	// ReadOthers allows any process except the receiver's own. Otherwise a sender could name the
	// receiver's process and make the receiver disclose its own data.
	ReadOthers Reading = iota
	ReadNone
	// ReadAny is for senders within the same program.
	ReadAny
)

// SetReading sets which memory r may read. Call it before the first frame.
func (r *ShmReceiver) SetReading(allowed Reading) { r.allowed = allowed }

// meet determines whether this process can read the sender's memory.
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

// CanRead reports whether ReadMemory can succeed. It returns false before the first frame has
// arrived.
func (r *ShmReceiver) CanRead() bool { return r.readable }

// ReadMemory fills b, at most ReadMost bytes, with the memory of the sender's process at address,
// read before the sender closed. The error is ErrUnreadable if that process has ended or cannot be
// accessed, and a different error if the process has no memory at address. After an error, the
// contents of b are undefined.
func (r *ShmReceiver) ReadMemory(address uint64, b []byte) error {
	defer runtime.KeepAlive(r)
	switch {
	case !r.readable:
		return ErrUnreadable
	case len(b) > ReadMost:
		return fmt.Errorf("channel: read of %d bytes, at most %d are allowed", len(b), ReadMost)
	case r.source.read(uintptr(address), b) == len(b)+proofSize && r.source.seen == r.proof:
	case r.proved():
		return fmt.Errorf("channel: process %d offers %d bytes at %#x, which are not in its memory", r.source.pid, len(b), address)
	default:
		r.readable = false
		return fmt.Errorf("channel: process %d: %w", r.source.pid, ErrUnreadable)
	}
	if r.control.gone.Load()&senderGone != 0 {
		return fmt.Errorf("channel: sender has closed: %w", ErrUnreadable)
	}
	return nil
}

// proved reports whether the sender's process is still the one that has mapped the ring.
func (r *ShmReceiver) proved() bool {
	return r.source.read(0, nil) == proofSize && r.source.seen == r.proof
}
