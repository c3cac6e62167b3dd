package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A Socket is one end of a connected Unix socket that wakes as few threads as
// it can. The runtime's poller wakes one for every byte that comes, and another
// one when the other side has read what was sent; both go through a monitor
// thread. A Socket stays out of the poller while its partner answers quickly,
// and waits in a system call that keeps the goroutine's processor.
//
//	read(2)  -- nothing there -->  ppoll(2)  -- nothing for attention -->  gate
//	   ^------------------------------+---------------------------------------+
//
// One goroutine at a time may read, and one write; the other methods may be
// called by any.
type Socket struct {
	file    *os.File // blocking as far as package os knows, so that it does not poll it
	raw     syscall.RawConn
	in      operation
	out     operation
	all     []syscall.Iovec // of the write under way
	left    []syscall.Iovec
	expired atomic.Bool // the read deadline is over
	closing sync.Once
}

// An operation is one direction of a Socket.
type operation struct {
	gate *gate
	// Fields so that they are made once: what to do, and two ways to wait.
	call, poll, arm func(fd uintptr)

	bytes []byte // to read into
	n     int
	err   error
}

// maxParts is how many parts of a vector the system takes.
const maxParts = 1024

// OpenSocket returns the Socket of a connected descriptor. It works on a
// duplicate: the caller still closes f.
func OpenSocket(f *os.File) (*Socket, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	fd, dupErr := -1, error(nil)
	err = conn.Control(func(of uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, dupErr = syscall.Dup(int(of)); dupErr == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err = errors.Join(err, dupErr); err != nil {
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	return newSocket(fd, f.Name())
}

// newSocket takes over fd.
func newSocket(fd int, name string) (*Socket, error) {
	if err := syscall.SetNonblock(fd, false); err != nil { // or package os would poll it
		syscall.Close(fd)
		return nil, fmt.Errorf("channel from descriptor: %w", os.NewSyscallError("fcntl", err))
	}
	s := &Socket{file: os.NewFile(uintptr(fd), name)}
	err := syscall.SetNonblock(fd, true)
	if err == nil {
		s.raw, err = s.file.SyscallConn()
	}
	for _, o := range []struct {
		*operation
		events uint32
	}{{&s.in, readable}, {&s.out, writable}} {
		if err == nil {
			err = o.prepare(fd, o.events)
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	s.in.call, s.out.call = s.readNow, s.writeNow
	return s, nil
}

// prepare makes what waits for events of socket fd.
func (o *operation) prepare(fd int, events uint32) (err error) {
	if o.gate, err = newGate(fd); err != nil {
		return err
	}
	o.poll = func(fd uintptr) { pollFor(fd, events) }
	o.arm = func(fd uintptr) { o.err = o.gate.arm(fd, events) }
	return nil
}

// Read reads like a net.Conn.
func (s *Socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.in.bytes = b
	err := s.do(&s.in)
	s.in.bytes = nil
	if err != nil {
		return 0, err
	}
	if s.in.n == 0 {
		return 0, io.EOF
	}
	return s.in.n, nil
}

// Write writes like a net.Conn.
func (s *Socket) Write(b []byte) (int, error) {
	n, err := s.writeAll([][]byte{b})
	return int(n), err
}

// writeAll writes the parts, as many as the system takes at once.
func (s *Socket) writeAll(parts [][]byte) (written int64, err error) {
	all := s.all[:0]
	for _, p := range parts {
		if len(p) > 0 {
			v := syscall.Iovec{Base: &p[0]}
			v.SetLen(len(p))
			all = append(all, v)
		}
	}
	for s.left = all; len(s.left) > 0 && err == nil; {
		if err = s.do(&s.out); err == nil {
			written += int64(s.out.n)
			s.left = skip(s.left, s.out.n)
		}
	}
	clear(all) // no bytes are held until the next write
	s.all = all
	return written, err
}

// skip returns what is left of a vector after n bytes.
func skip(vector []syscall.Iovec, n int) []syscall.Iovec {
	for len(vector) > 0 && n >= int(vector[0].Len) {
		n -= int(vector[0].Len)
		vector = vector[1:]
	}
	if n > 0 {
		v := &vector[0]
		v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
		v.SetLen(int(v.Len) - n)
	}
	return vector
}

// do does an operation once it can be done.
func (s *Socket) do(o *operation) error {
	for waited := false; ; waited = true {
		if o == &s.in && s.expired.Load() {
			return os.ErrDeadlineExceeded
		}
		if err := s.raw.Control(o.call); err != nil {
			return net.ErrClosed
		}
		if !errors.Is(o.err, syscall.EAGAIN) {
			return o.err
		}
		if !waited && s.attend(o) {
			continue
		}
		if err := s.raw.Control(o.arm); err != nil {
			return net.ErrClosed
		}
		if o.err != nil {
			return o.err
		}
		if err := o.gate.wait(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return net.ErrClosed
		}
	}
}

func (s *Socket) readNow(fd uintptr) {
	s.in.result(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&s.in.bytes[0])), uintptr(len(s.in.bytes)))
}

func (s *Socket) writeNow(fd uintptr) {
	s.out.result(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&s.left[0])), uintptr(min(len(s.left), maxParts)))
}

// result makes a system call that does not block.
func (o *operation) result(call, fd, a, b uintptr) {
	for {
		n, _, errno := syscall.Syscall(call, fd, a, b)
		if errors.Is(errno, syscall.EINTR) {
			continue
		}
		if o.n, o.err = int(n), nil; errno != 0 {
			o.n, o.err = 0, errno
		}
		return
	}
}

// attend waits for the socket, and returns false if it must not. Others go
// first: what the caller has just made ready would else wait for another
// processor.
func (s *Socket) attend(o *operation) bool {
	runtime.Gosched()
	defer attending.Add(-1)
	return int(attending.Add(1)) < runtime.GOMAXPROCS(0) && s.raw.Control(o.poll) == nil
}

// SetReadDeadline ends reads at once when t is past, and else not: other times
// are not kept. A read that waits in the system ends after attention.
func (s *Socket) SetReadDeadline(t time.Time) error {
	s.expired.Store(!t.IsZero() && t.Before(time.Now()))
	return s.in.gate.file.SetReadDeadline(t)
}

// CloseWrite tells the other end that nothing follows.
func (s *Socket) CloseWrite() error {
	var err error
	if s.raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_WR) }) != nil {
		return net.ErrClosed
	}
	return err
}

// Close ends what is under way, too.
func (s *Socket) Close() error {
	s.closing.Do(func() {
		if s.raw != nil {
			s.raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
		for _, g := range []*gate{s.in.gate, s.out.gate} {
			if g != nil {
				g.file.Close()
			}
		}
		s.file.Close()
	})
	return nil
}
