package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A pipe carries bytes one way, between a peer and a process or two processes,
// through memory that both share. A socket between them wakes who sleeps, and
// tells of the end:
//
//	writer   bytes -> ring -> bytes   reader
//	            == wake, end ==>           when it sleeps
//	            <= wake, gone ==           when the ring was full
//
// A descriptor of a pipe is an end of that socket, in which the descriptors of the
// memory and the bell wait to be taken out. The bell is an event counter and
// wakes a reader that is a peer, in place of the socket: it spares two system
// calls each time, for the runtime's poller tells of each ring though nobody
// reads the counter. A process is woken through the socket, because to ring a bell
// could block a peer: whoever shares it may make it do so.
//
// Both ends bound what an untrusted other end can make them do: a byte in the socket that was not asked for ends
// the pipe, and so do rings without bytes.

// NewPipe returns the descriptors of both ends of a pipe. With a bell its reader
// is a peer.
func NewPipe(bell bool) (writer, reader *os.File, err error) {
	p, err := newParts(bell)
	if err != nil {
		return nil, nil, err
	}
	defer p.closeShared()
	shared := []int{int(p.memory.Fd())}
	if bell {
		shared = append(shared, p.bell)
	}
	rights := syscall.UnixRights(shared...)
	for _, fd := range p.ends {
		if err = syscall.Sendmsg(fd, []byte{0}, rights, nil, 0); err != nil {
			p.closeEnds()
			return nil, nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("sendmsg", err))
		}
	}
	return os.NewFile(uintptr(p.ends[0]), "pipe"), os.NewFile(uintptr(p.ends[1]), "pipe"), nil
}

// parts are what a pipe is made of.
type parts struct {
	memory *os.File
	bell   int    // negative: none
	ends   [2]int // of the socket: the writer's and the reader's
}

func newParts(bell bool) (p parts, err error) {
	p.bell = -1
	if p.memory, err = newMemory("p2pmpi-pipe", controlSize+pipeCapacity); err != nil {
		return p, err
	}
	if bell {
		const closeOnExec, nonBlocking = syscall.O_CLOEXEC, syscall.O_NONBLOCK // of eventfd2(2), too
		fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, closeOnExec|nonBlocking, 0)
		if errno != 0 {
			p.closeShared()
			return p, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("eventfd2", errno))
		}
		p.bell = int(fd)
	}
	p.ends, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		p.closeShared()
		return p, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("socketpair", err))
	}
	return p, nil
}

func (p parts) closeShared() {
	p.memory.Close()
	if p.bell >= 0 {
		syscall.Close(p.bell)
	}
}

func (p parts) closeEnds() {
	syscall.Close(p.ends[0])
	syscall.Close(p.ends[1])
}

// newLocalPipe opens both ends of a pipe with a bell. Nothing is sent: behind the walls of a
// program no descriptors are.
func newLocalPipe() (*PipeWriter, *PipeReader, error) {
	p, err := newParts(true)
	if err != nil {
		return nil, nil, err
	}
	defer p.closeShared()
	defer p.closeEnds()
	out, ring, err := p.open(p.ends[0])
	if err != nil {
		return nil, nil, err
	}
	w := newPipeWriter(out, ring)
	in, ring, err := p.open(p.ends[1])
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, newPipeReader(in, ring, false), nil
}

// open opens an end of the pipe, with descriptors of its own.
func (p parts) open(end int) (*pipeEnd, *pipeRing, error) {
	f, err := again(end)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	e, err := newPipeEnd(f)
	if err != nil {
		return nil, nil, err
	}
	if e.bell, err = again(p.bell); err != nil {
		return e.complete(nil, err)
	}
	m, err := mapShared(p.memory)
	if err != nil {
		return e.complete(nil, err)
	}
	return e.complete(newPipeRing(m))
}

// again returns another descriptor of what fd is one of.
func again(fd int) (*os.File, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("fcntl", errno))
	}
	return os.NewFile(n, "pipe"), nil
}

// A pipeEnd is what both ends of a pipe have.
type pipeEnd struct {
	conn   *net.UnixConn
	bell   *os.File // or nil
	socket syscall.RawConn
	ringer syscall.RawConn // of the bell, or else the socket
}

func openPipe(f *os.File) (*pipeEnd, *pipeRing, error) {
	e, err := newPipeEnd(f)
	if err != nil {
		return nil, nil, err
	}
	return e.complete(e.takeShared())
}

// newPipeEnd returns an end without memory and bell; the caller still closes f.
func newPipeEnd(f *os.File) (*pipeEnd, error) {
	conn, err := FromFile(f)
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("channel: pipe from a %s socket", conn.LocalAddr().Network())
	}
	return &pipeEnd{conn: unix}, nil
}

// complete completes an end that has got its ring, and closes one that has not.
func (e *pipeEnd) complete(ring *pipeRing, err error) (*pipeEnd, *pipeRing, error) {
	if err == nil {
		e.socket, err = e.conn.SyscallConn()
		e.ringer = e.socket
	}
	if err == nil && e.bell != nil {
		e.ringer, err = e.bell.SyscallConn()
	}
	if err != nil {
		e.close()
		return nil, nil, fmt.Errorf("channel: open pipe: %w", err)
	}
	return e, ring, nil
}

// takeShared takes what waits in the socket, and maps the memory.
func (e *pipeEnd) takeShared() (*pipeRing, error) {
	if err := e.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil { // it is there already
		return nil, err
	}
	oob := make([]byte, syscall.CmsgSpace(2*4))
	_, n, _, _, err := e.conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("no memory comes with it")
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "p2pmpi-pipe")
	defer file.Close()
	if len(fds) > 1 { // room was for no more
		e.bell = os.NewFile(uintptr(fds[1]), "bell")
	}
	m, err := mapShared(file)
	if err != nil {
		return nil, err
	}
	if err := e.conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return newPipeRing(m)
}

func (e *pipeEnd) close() error {
	if e.bell != nil {
		e.bell.Close()
	}
	return e.conn.Close()
}

// wake wakes the other side through the socket. One that is full has enough to
// wake it, and one without another side is noticed by who reads it.
func (e *pipeEnd) wake() { e.socket.Control(wake) }

func wake(fd uintptr) {
	syscall.Sendto(int(fd), wakeUp, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, nil)
}

// wakeReader wakes a reader, by its bell if it has one.
func (e *pipeEnd) wakeReader() {
	if e.bell == nil {
		e.wake()
		return
	}
	e.ringer.Control(ringBell)
}

func ringBell(fd uintptr) { syscall.Write(int(fd), one) }

var (
	wakeUp = []byte{0}
	one    = binary.NativeEndian.AppendUint64(nil, 1)
)

// useHeap moves the ring of a pipe within this process to ordinary memory, for the
// race detector to see what comes after what.
func useHeap(w *PipeWriter, r *PipeReader) error {
	words := make([]uint64, (controlSize+pipeCapacity)/8)
	ring, err := newPipeRing(&memory{unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))})
	if err == nil {
		w.ring.pipeRing, r.ring.pipeRing = ring, ring
	}
	return err
}
