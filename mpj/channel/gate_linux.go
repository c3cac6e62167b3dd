package channel

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// blockTime is the time for which a goroutine waits in a blocking system call before it uses the
// runtime's poller. An active process at the other end usually answers within this time.
const blockTime = time.Millisecond

const (
	readable = syscall.EPOLLIN | syscall.EPOLLRDHUP
	writable = syscall.EPOLLOUT
)

// blockedGoroutines counts the goroutines that currently wait in a blocking system call. The runtime
// takes back their processors only after a while, so at least one processor always stays free for
// it.
var blockedGoroutines atomic.Int32

// pollFor returns when one of the events of fd occurs, or after blockTime.
func pollFor(fd uintptr, events uint32) {
	p := struct {
		fd              int32
		events, revents int16
	}{int32(fd), int16(events), 0}
	timeout := syscall.NsecToTimespec(int64(blockTime))
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
}

// A gate lets a goroutine wait for events of a socket without occupying a thread. It is an epoll
// instance that the runtime's poller watches. A gate opens only when armed, and only for the
// requested events, so that other events wake no goroutine.
type gate struct {
	file *os.File
	raw  syscall.RawConn
	try  func(fd uintptr) bool

	// Arguments and result of arm, which are fields so that arm does not allocate. set is called
	// with the epoll instance and applies event to socket.
	set    func(epoll uintptr)
	event  syscall.EpollEvent
	socket int
	err    error
}

// newGate returns a gate for the socket fd, not armed.
func newGate(fd int) (*gate, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLONESHOT}); err != nil {
		syscall.Close(epoll)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	syscall.SetNonblock(epoll, true) // required for polling by package os
	g := &gate{file: os.NewFile(uintptr(epoll), "epoll")}
	if g.raw, err = g.file.SyscallConn(); err != nil {
		g.file.Close()
		return nil, err
	}
	g.try = isOpen
	g.set = func(epoll uintptr) {
		g.err = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, g.socket, &g.event)
	}
	return g, nil
}

// arm makes the gate open at the next of the given events of socket fd.
func (g *gate) arm(fd uintptr, events uint32) error {
	g.socket, g.event.Events = int(fd), events|syscall.EPOLLONESHOT
	if err := g.raw.Control(g.set); err != nil {
		return net.ErrClosed
	}
	return os.NewSyscallError("epoll_ctl", g.err)
}

// wait waits until the gate opens, its deadline passes or it is closed.
func (g *gate) wait() error { return g.raw.Read(g.try) }

func isOpen(epoll uintptr) bool {
	var events [1]syscall.EpollEvent
	n, err := syscall.EpollWait(int(epoll), events[:], 0)
	return n > 0 || err != nil && !errors.Is(err, syscall.EINTR)
}
