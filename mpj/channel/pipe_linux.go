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

// A pipe carries bytes in one direction, between a peer and a process or between two processes,
// through memory that both share. A socket between them wakes a sleeping end, and signals the end
// of the pipe:
//
//	writer   bytes -> ring -> bytes   reader
//	            == wake, end ==>           if it sleeps
//	            <= wake, gone ==           if the ring was full
//
// A descriptor of a pipe is one end of that socket. The descriptors of the memory and the bell are
// queued in the socket. The bell is an event counter. If the reader is a peer, the bell wakes it in
// place of the socket. This saves two system calls per wake-up, because the runtime's poller reports
// each ring although the counter is never read. A process is woken through the socket, because
// ringing a bell could block the peer: any process that shares the bell can make it blocking and
// fill its counter.
//
// Both ends bound the work that an untrusted other end can cause. An unrequested byte in the socket
// ends the pipe, and so do too many wake-ups without data.

// NewPipe returns the descriptors of both ends of a pipe. With a bell, the reader must be a peer.
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

// parts contains the descriptors of a pipe.
type parts struct {
	memory *os.File
	bell   int    // negative for a pipe without a bell
	ends   [2]int // ends of the socket: the writer's and the reader's
}

func newParts(bell bool) (p parts, err error) {
	p.bell = -1
	if p.memory, err = newMemory("p2pmpi-pipe", controlSize+pipeCapacity); err != nil {
		return p, err
	}
	if bell {
		const closeOnExec, nonBlocking = syscall.O_CLOEXEC, syscall.O_NONBLOCK // also flags of eventfd2(2)
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

// newLocalPipe opens both ends of a pipe with a bell. It sends no descriptors, because the sandbox
// of a program forbids that.
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

// open opens one end of the pipe, with duplicated descriptors.
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

// again returns a duplicate of descriptor fd.
func again(fd int) (*os.File, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("fcntl", errno))
	}
	return os.NewFile(n, "pipe"), nil
}

// A pipeEnd is the state common to both ends of a pipe.
type pipeEnd struct {
	conn   *net.UnixConn
	bell   *os.File // nil for a pipe without a bell
	socket syscall.RawConn
	ringer syscall.RawConn // descriptor of the bell or, without a bell, of the socket
}

func openPipe(f *os.File) (*pipeEnd, *pipeRing, error) {
	e, err := newPipeEnd(f)
	if err != nil {
		return nil, nil, err
	}
	return e.complete(e.takeShared())
}

// newPipeEnd returns an end without memory and bell. The caller still closes f.
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

// complete completes an end that has its ring, or closes the end if err is not nil.
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

// takeShared receives the descriptors queued in the socket, and maps the memory.
func (e *pipeEnd) takeShared() (*pipeRing, error) {
	if err := e.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil { // the message is already queued
		return nil, err
	}
	oob := make([]byte, syscall.CmsgSpace(2*4))
	_, n, _, _, err := e.conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("no shared memory attached")
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "p2pmpi-pipe")
	defer file.Close()
	if len(fds) > 1 { // the buffer has room for two
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

// wake wakes the other side through the socket. Errors need no handling: a full socket already
// contains wake-ups, and the goroutine that reads the socket detects that the other side has closed.
func (e *pipeEnd) wake() { e.socket.Control(wake) }

func wake(fd uintptr) {
	syscall.Sendto(int(fd), wakeUp, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, nil)
}

// wakeReader wakes the reader, with the bell if there is one.
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

// useHeap moves the ring of a pipe within this process to ordinary memory, so that the race detector
// can check the order of accesses.
func useHeap(w *PipeWriter, r *PipeReader) error {
	words := make([]uint64, (controlSize+pipeCapacity)/8)
	ring, err := newPipeRing(&memory{unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))})
	if err == nil {
		w.ring.pipeRing, r.ring.pipeRing = ring, ring
	}
	return err
}
