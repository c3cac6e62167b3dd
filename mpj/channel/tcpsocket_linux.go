//go:build !386 && !s390x

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

// A tcpSocket is this process's end of a TCP connection, with as few threads
// woken for a message as can be. The runtime's poller would have one wait, and
// another one go on with what has come. Here whoever reads also waits:
//
//	look  --  recv(2), not blocking, as long as a quick answer takes
//	wait  --  recv(2), blocking, for attention
//	gate  --  the runtime's poller, without a thread
//
// One goroutine at a time may read, and one write; the other methods may be
// called by any.
type tcpSocket struct {
	file    *os.File // blocking as far as package os knows, so that it does not poll it
	raw     syscall.RawConn
	in, out direction
	misses  uint        // reads in a row that looked, and saw nothing
	records int         // that are to follow: see hold
	expired atomic.Bool // the read deadline is over
	closed  atomic.Bool
	closing sync.Once
}

// A direction is what is read or written.
type direction struct {
	gate *gate
	// Fields so that they are made once: to read or write at once, to do so within
	// attention, and to have the gate opened.
	now, soon, arm func(fd uintptr)

	bytes []byte // to read into, or to write
	n     int
	err   error
}

// How often a read looks before it waits, and how many reads that see nothing
// make it give up looking, but for one in so many. All looks take 20 to 30 µs;
// a thread that sleeps instead is woken 5 to 10 µs late.
const (
	looks      = 48
	missesMost = 4
	missesThen = 32
)

// OpenTCP returns a connection of a connected TCP socket. It works on a
// duplicate: the caller still closes f. Nobody else may read or write the
// connection: whether it blocks is common to all duplicates.
func OpenTCP(f *os.File) (net.Conn, error) {
	fd, err := duplicate(f)
	if err != nil {
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	if err = syscall.SetNonblock(fd, false); err == nil {
		patience := syscall.NsecToTimeval(int64(attention))
		err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	s := &tcpSocket{file: os.NewFile(uintptr(fd), f.Name())}
	s.in.now, s.in.soon = s.readNow, s.readSoon
	s.out.now, s.out.soon = s.writeNow, s.writeSoon
	s.raw, err = s.file.SyscallConn()
	if err == nil {
		err = errors.Join(s.in.prepare(fd, readable), s.out.prepare(fd, writable))
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	return s, nil
}

// duplicate returns another descriptor of f, closed on exec.
func duplicate(f *os.File) (fd int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = conn.Control(func(of uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, failed = syscall.Dup(int(of)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	})
	return fd, errors.Join(err, failed)
}

// prepare makes what waits for events of socket fd.
func (d *direction) prepare(fd int, events uint32) (err error) {
	if d.gate, err = newGate(fd); err != nil {
		return err
	}
	d.arm = func(fd uintptr) { d.err = d.gate.arm(fd, events) }
	return nil
}

func (s *tcpSocket) Read(b []byte) (int, error) { return s.read(b, true) }

// awaitEnd returns when the connection has ended, or something has come.
func (s *tcpSocket) awaitEnd() { s.read(make([]byte, 1), false) }

func (s *tcpSocket) read(b []byte, attend bool) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.in.bytes = b
	err := s.do(&s.in, attend)
	s.in.bytes = nil
	switch {
	case err != nil:
		return 0, err
	case s.in.n > 0:
		return s.in.n, nil
	case s.closed.Load():
		return 0, net.ErrClosed
	}
	return 0, io.EOF
}

// hold says that so many writes are parts of one. Every other one is held back
// for the next: two records are as quickly read as one, and woken for once.
func (s *tcpSocket) hold(records int) { s.records = records }

func (s *tcpSocket) Write(b []byte) (written int, err error) {
	s.records--
	for s.out.bytes = b; len(s.out.bytes) > 0 && err == nil; {
		if err = s.do(&s.out, true); err == nil {
			written += s.out.n
			s.out.bytes = s.out.bytes[s.out.n:]
		}
	}
	s.out.bytes = nil
	return written, err
}

// do reads or writes once that can be done. A write begins at once: most need
// not wait.
func (s *tcpSocket) do(d *direction, attend bool) error {
	for now := d == &s.out; ; now = false {
		if d == &s.in && s.expired.Load() {
			return os.ErrDeadlineExceeded
		}
		var err error
		waited := !now && attend && s.attend()
		if waited {
			err = s.raw.Control(d.soon)
			attending.Add(-1)
			attend = false
		} else {
			err = s.raw.Control(d.now)
		}
		switch {
		case err != nil:
			return net.ErrClosed
		case !errors.Is(d.err, syscall.EAGAIN):
			return d.err
		case now && attend:
			continue
		}
		if err := s.await(d); err != nil {
			return err
		}
	}
}

// attend reports whether the caller may keep a processor while it waits.
func (s *tcpSocket) attend() bool {
	if int(attending.Add(1)) < runtime.GOMAXPROCS(0) {
		return true
	}
	attending.Add(-1)
	return false
}

// await waits at the gate.
func (s *tcpSocket) await(d *direction) error {
	if err := s.raw.Control(d.arm); err != nil {
		return net.ErrClosed
	}
	if d.err != nil {
		return d.err
	}
	if err := d.gate.wait(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return net.ErrClosed
	}
	return nil
}

func (s *tcpSocket) readNow(fd uintptr) {
	s.in.transfer(syscall.SYS_RECVFROM, fd, syscall.MSG_DONTWAIT)
}

func (s *tcpSocket) readSoon(fd uintptr) {
	d := &s.in
	if s.misses < missesMost || s.misses%missesThen == 0 {
		for range looks {
			if s.readNow(fd); d.err != syscall.EAGAIN || s.expired.Load() { //nolint:errorlint // it is one
				s.misses = 0
				return
			}
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // to the partner, if it is to run here
		}
	}
	s.misses++
	d.transfer(syscall.SYS_RECVFROM, fd, 0)
}

func (s *tcpSocket) writeNow(fd uintptr) {
	flags := uintptr(syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL)
	if s.records > 0 && s.records%2 == 1 {
		flags |= msgMore
	}
	s.out.transfer(syscall.SYS_SENDTO, fd, flags)
}

// msgMore is the flag of send(2) that package syscall does not name.
const msgMore = 0x8000

func (s *tcpSocket) writeSoon(fd uintptr) {
	pollFor(fd, writable)
	s.writeNow(fd)
}

// transfer makes one system call that reads or writes.
func (d *direction) transfer(call, fd, flags uintptr) {
	for {
		n, _, errno := syscall.Syscall6(call, fd, uintptr(unsafe.Pointer(&d.bytes[0])), uintptr(len(d.bytes)), flags, 0, 0)
		switch errno {
		case 0:
			d.n, d.err = int(n), nil
		case syscall.EINTR:
			continue
		default:
			d.n, d.err = 0, errno
		}
		return
	}
}

// SetReadDeadline ends reads when t is past, and else not: other times are not
// kept. A read that waits in the system ends after attention.
func (s *tcpSocket) SetReadDeadline(t time.Time) error {
	s.expired.Store(!t.IsZero() && t.Before(time.Now()))
	return s.in.gate.file.SetReadDeadline(t)
}

// SetDeadline is SetReadDeadline: writes have none.
func (s *tcpSocket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (s *tcpSocket) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr and RemoteAddr say nothing more than what this is.
func (s *tcpSocket) LocalAddr() net.Addr  { return new(net.TCPAddr) }
func (s *tcpSocket) RemoteAddr() net.Addr { return new(net.TCPAddr) }

// Close ends what is under way, too.
func (s *tcpSocket) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
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
