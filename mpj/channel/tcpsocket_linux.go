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

// A tcpSocket is this process's end of a TCP connection. It wakes as few threads per message as
// possible. With the runtime's poller, one thread would wait, and another thread would process the
// data. Here the reading goroutine itself waits:
//
//	look  --  nonblocking recv(2), for the time of a fast answer
//	wait  --  blocking recv(2), for at most blockTime
//	gate  --  the runtime's poller, without occupying a thread
//
// Only one goroutine at a time may read, and one may write; any goroutine may call the other
// methods.
type tcpSocket struct {
	file       *os.File // in blocking mode for package os, so that the runtime does not poll it
	raw        syscall.RawConn
	in, out    direction
	emptyReads uint        // consecutive reads without a successful look
	records    int         // number of writes that follow (hold)
	expired    atomic.Bool // the read deadline has passed
	closed     atomic.Bool
	closing    sync.Once
}

// A direction is the state of reading or of writing.
type direction struct {
	gate *gate
	// Functions that read or write at once, that read or write within blockTime, and that arm the
	// gate. They are fields so that calls do not allocate them.
	now, soon, arm func(fd uintptr)

	bytes []byte // buffer to read into, or data to write
	n     int
	err   error
}

// looks is the number of looks before a read waits. After maxEmptyReads reads without a successful
// look, only one read in emptyReadPeriod looks at all. All looks of a read take 20 to 30 µs; a
// thread that sleeps instead wakes 5 to 10 µs late.
const (
	looks           = 48
	maxEmptyReads   = 4
	emptyReadPeriod = 32
)

// OpenTCP returns a connection for a connected TCP socket. It uses a duplicate of the descriptor, so
// the caller still closes f. The connection must not be read or written through other duplicates,
// because all duplicates share the blocking mode.
func OpenTCP(f *os.File) (net.Conn, error) {
	fd, err := duplicate(f)
	if err != nil {
		return nil, fmt.Errorf("channel from descriptor: %w", err)
	}
	if err = syscall.SetNonblock(fd, false); err == nil {
		timeout := syscall.NsecToTimeval(int64(blockTime))
		err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &timeout)
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

// duplicate returns a duplicate of f's descriptor, with close-on-exec set.
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

// prepare creates the gate for events of socket fd.
func (d *direction) prepare(fd int, events uint32) (err error) {
	if d.gate, err = newGate(fd); err != nil {
		return err
	}
	d.arm = func(fd uintptr) { d.err = d.gate.arm(fd, events) }
	return nil
}

func (s *tcpSocket) Read(b []byte) (int, error) { return s.read(b, true) }

// awaitEnd returns when the connection has ended, or when data arrives.
func (s *tcpSocket) awaitEnd() { s.read(make([]byte, 1), false) }

func (s *tcpSocket) read(b []byte, block bool) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.in.bytes = b
	err := s.do(&s.in, block)
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

// hold announces that the given number of writes belong together. Every other write is delayed until
// the next, because the receiver reads two records as fast as one, with a single wake-up.
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

// do reads or writes once, and waits until the operation is possible. It first tries a write at
// once, because most writes need not wait.
func (s *tcpSocket) do(d *direction, block bool) error {
	for now := d == &s.out; ; now = false {
		if d == &s.in && s.expired.Load() {
			return os.ErrDeadlineExceeded
		}
		var err error
		waited := !now && block && s.mayBlock()
		if waited {
			err = s.raw.Control(d.soon)
			blockedGoroutines.Add(-1)
			block = false
		} else {
			err = s.raw.Control(d.now)
		}
		switch {
		case err != nil:
			return net.ErrClosed
		case !errors.Is(d.err, syscall.EAGAIN):
			return d.err
		case now && block:
			continue
		}
		if err := s.await(d); err != nil {
			return err
		}
	}
}

// mayBlock reports whether the caller may occupy a processor while it waits.
func (s *tcpSocket) mayBlock() bool {
	if int(blockedGoroutines.Add(1)) < runtime.GOMAXPROCS(0) {
		return true
	}
	blockedGoroutines.Add(-1)
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
	if s.emptyReads < maxEmptyReads || s.emptyReads%emptyReadPeriod == 0 {
		for range looks {
			if s.readNow(fd); d.err != syscall.EAGAIN || s.expired.Load() { //nolint:errorlint // err is an Errno
				s.emptyReads = 0
				return
			}
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // lets the process at the other end run on this processor
		}
	}
	s.emptyReads++
	d.transfer(syscall.SYS_RECVFROM, fd, 0)
}

func (s *tcpSocket) writeNow(fd uintptr) {
	flags := uintptr(syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL)
	if s.records > 0 && s.records%2 == 1 {
		flags |= msgMore
	}
	s.out.transfer(syscall.SYS_SENDTO, fd, flags)
}

// msgMore is MSG_MORE of send(2), which package syscall does not define.
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

// SetReadDeadline ends reads if t has passed; it ignores other times. A read in a blocking system
// call ends after blockTime.
func (s *tcpSocket) SetReadDeadline(t time.Time) error {
	s.expired.Store(!t.IsZero() && t.Before(time.Now()))
	return s.in.gate.file.SetReadDeadline(t)
}

// SetDeadline calls SetReadDeadline, because writes have no deadline.
func (s *tcpSocket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (s *tcpSocket) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr and RemoteAddr return only the type of the connection.
func (s *tcpSocket) LocalAddr() net.Addr  { return new(net.TCPAddr) }
func (s *tcpSocket) RemoteAddr() net.Addr { return new(net.TCPAddr) }

// Close closes the connection, and also ends reads and writes in progress.
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
