package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
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

// NewPipe returns the descriptors of both ends of a pipe. With a bell its reader
// is a peer.
func NewPipe(bell bool) (writer, reader *os.File, err error) {
	memory, err := newMemory("p2pmpi-pipe", controlSize+pipeCapacity)
	if err != nil {
		return nil, nil, err
	}
	defer memory.Close()
	shared := []int{int(memory.Fd())}
	if bell {
		const closeOnExec, nonBlocking = syscall.O_CLOEXEC, syscall.O_NONBLOCK // of eventfd2(2), too
		fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, closeOnExec|nonBlocking, 0)
		if errno != 0 {
			return nil, nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("eventfd2", errno))
		}
		defer syscall.Close(int(fd))
		shared = append(shared, int(fd))
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("socketpair", err))
	}
	rights := syscall.UnixRights(shared...)
	for _, fd := range fds {
		if err = syscall.Sendmsg(fd, []byte{0}, rights, nil, 0); err != nil {
			syscall.Close(fds[0])
			syscall.Close(fds[1])
			return nil, nil, fmt.Errorf("channel: pipe: %w", os.NewSyscallError("sendmsg", err))
		}
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// A pipeEnd is what both ends of a pipe have.
type pipeEnd struct {
	conn   *net.UnixConn
	bell   *os.File // or nil
	socket syscall.RawConn
	ringer syscall.RawConn // of the bell, or else the socket
}

func openPipe(f *os.File) (*pipeEnd, *pipeRing, error) {
	conn, err := FromFile(f)
	if err != nil {
		return nil, nil, err
	}
	e := new(pipeEnd)
	var ok bool
	if e.conn, ok = conn.(*net.UnixConn); !ok {
		conn.Close()
		return nil, nil, fmt.Errorf("channel: pipe from a %s socket", conn.LocalAddr().Network())
	}
	ring, err := e.takeShared()
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

// A PipeReader is the reading end of a pipe. One goroutine at a time may read;
// SetReadDeadline and Close may be called from others.
type PipeReader struct {
	end     *pipeEnd
	ring    pipeOutput
	patient bool
	expired atomic.Bool // the read deadline is over
	closed  atomic.Bool
	over    atomic.Bool // of one with a bell: nothing follows
	rest    [64]byte    // of wake-ups
	wait    func(fd uintptr) bool
}

// OpenPipeReader opens the reading end of a pipe; the caller still closes f. A
// patient reader looks at the memory for a while before it sleeps: that is for a
// process, which waits for an answer; a peer has many pipes, and sleeps at once.
func OpenPipeReader(f *os.File, patient bool) (*PipeReader, error) {
	e, ring, err := openPipe(f)
	if err != nil {
		return nil, err
	}
	r := &PipeReader{end: e, ring: pipeOutput{pipeRing: ring}, patient: patient}
	if r.wait = r.nothingToWaitFor; e.bell != nil {
		r.wait = r.rung
		go r.watch() // until either end is closed
	}
	return r, nil
}

// Read reads what is there, or waits until something is. The error is io.EOF when
// the writer has closed and everything has been read.
func (r *PipeReader) Read(p []byte) (int, error) {
	b, err := r.await(len(p))
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	r.free(n)
	return n, nil
}

// WriteTo writes all that comes to w, straight from the shared memory, until the
// writer has closed: the memory may change while w looks at it.
func (r *PipeReader) WriteTo(w io.Writer) (written int64, err error) {
	defer runtime.KeepAlive(r)
	for {
		b, err := r.await(carrySize)
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(b)
		written += int64(n)
		if err != nil {
			return written, err
		}
		r.free(n)
	}
}

// carrySize is what a libp2p stream takes in one frame, of 64 KiB with its header.
// A byte more would go in a second one.
const carrySize = 64<<10 - 12

func (r *PipeReader) free(n int) {
	if r.ring.release(n) {
		r.end.wake()
	}
}

// await returns bytes that are there, at most n, once there are any.
func (r *PipeReader) await(n int) ([]byte, error) {
	if r.expired.Load() {
		return nil, os.ErrDeadlineExceeded
	}
	if !r.ring.ready() && !(r.patient && r.look()) {
		if err := r.sleep(); err != nil {
			return nil, err
		}
	}
	b, err := r.ring.peek(n)
	if err == nil && len(b) == 0 {
		err = io.EOF // sleep has ended with nothing
	}
	return b, err
}

// sleep returns when there are bytes, or none will come.
func (r *PipeReader) sleep() error {
	r.ring.doze()
	switch err := r.end.ringer.Read(r.wait); {
	case r.closed.Load():
	case err == nil || r.over.Load():
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return net.ErrClosed
}

// watch waits for the end of the socket, on which nothing comes to a reader that
// has a bell.
func (r *PipeReader) watch() {
	io.Copy(io.Discard, r.end.conn)
	r.over.Store(true)
	r.end.bell.SetReadDeadline(time.Unix(1, 0)) // to ring it could block
}

// rung reports whether sleep is over, at the bell.
func (r *PipeReader) rung(uintptr) bool {
	if r.ring.ready() {
		return true
	}
	r.ring.doze() // whoever rang for bytes that are taken already believes this side awake
	return r.ring.ready() || r.over.Load()
}

// nothingToWaitFor reports whether sleep is over, at the socket. It empties that,
// so that the next wake-up is seen.
func (r *PipeReader) nothingToWaitFor(fd uintptr) bool {
	for !r.ring.ready() {
		n, err := syscall.Read(int(fd), r.rest[:])
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false
		case n <= 0: // the end; what was written before is in the ring
			return true
		case !r.ring.ready():
			r.ring.doze() // as above
		}
	}
	return true
}

// SetReadDeadline ends reads at once when t is past, and else not: other times
// are not kept. One that looks at the memory ends when it would sleep.
func (r *PipeReader) SetReadDeadline(t time.Time) error {
	r.expired.Store(!t.IsZero() && t.Before(time.Now()))
	if r.end.bell == nil {
		return r.end.conn.SetReadDeadline(t)
	}
	if r.over.Load() { // watch has set its own
		return nil
	}
	return r.end.bell.SetReadDeadline(t)
}

// Close tells the writer that nobody reads any more.
func (r *PipeReader) Close() error {
	r.closed.Store(true)
	return r.end.close()
}

// looking counts the readers that look at their memory now. One processor is
// left to others.
var looking atomic.Int32

// lookTime is how long a patient reader looks before it sleeps. A partner that
// answers does so within it. Looking gives way to other processes each time.
const lookTime = 300 * time.Microsecond

// look looks at the memory for a while, and reports whether something has come.
func (r *PipeReader) look() bool {
	runtime.Gosched() // what the caller has just made ready goes first
	if int(looking.Add(1)) >= runtime.GOMAXPROCS(0) {
		looking.Add(-1)
		return r.ring.ready()
	}
	defer looking.Add(-1)
	const looks = 16 // between two looks at the clock
	for start := time.Now(); !r.expired.Load(); {
		for range looks {
			if r.ring.ready() {
				return true
			}
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
		if time.Since(start) > lookTime {
			return false
		}
	}
	return false
}

// A PipeWriter is the writing end of a pipe. One goroutine at a time may write;
// the other methods may be called from others.
type PipeWriter struct {
	end  *pipeEnd
	ring pipeInput
	room chan struct{} // of capacity 1: the reader says that there is room
	gone chan struct{} // closed when the reader has closed, or this end
}

// OpenPipeWriter opens the writing end of a pipe; the caller still closes f.
func OpenPipeWriter(f *os.File) (*PipeWriter, error) {
	e, ring, err := openPipe(f)
	if err != nil {
		return nil, err
	}
	w := &PipeWriter{end: e, ring: pipeInput{pipeRing: ring}, room: make(chan struct{}, 1), gone: make(chan struct{})}
	go w.watch() // until either end is closed
	return w, nil
}

// watch hears what the reader says.
func (w *PipeWriter) watch() {
	defer close(w.gone)
	var wakeUps [64]byte
	for {
		if _, err := w.end.conn.Read(wakeUps[:]); err != nil {
			return
		}
		select {
		case w.room <- struct{}{}:
		default:
		}
	}
}

// Gone is closed when nobody reads any more.
func (w *PipeWriter) Gone() <-chan struct{} { return w.gone }

// Drained reports whether the reader has taken everything, for what the memory
// says.
func (w *PipeWriter) Drained() bool {
	defer runtime.KeepAlive(w)
	return w.ring.control.taken.Load() == w.ring.control.filled.Load()
}

// Write returns when all of p is in the pipe.
func (w *PipeWriter) Write(p []byte) (int, error) {
	one := [1][]byte{p}
	n, err := w.writeAll(one[:])
	return int(n), err
}

// writeAll writes the parts, which it uses up.
func (w *PipeWriter) writeAll(parts [][]byte) (written int64, err error) {
	for step := firstStep; len(parts) > 0; step = carrySize {
		b, err := w.awaitRoom()
		if err != nil {
			return written, err
		}
		n := 0
		for b = b[:min(len(b), step)]; len(parts) > 0 && n < len(b); {
			m := copy(b[n:], parts[0])
			n += m
			if parts[0] = parts[0][m:]; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
		if n > 0 {
			w.publish(n)
			written += int64(n)
		}
	}
	return written, nil
}

// firstStep is how many bytes of a long message are published first: the reader
// wakes up while the next are copied in.
const firstStep = carrySize / 4

// ReadFrom reads r until its end, straight into the shared memory.
func (w *PipeWriter) ReadFrom(r io.Reader) (read int64, err error) {
	defer runtime.KeepAlive(w)
	for {
		b, err := w.awaitRoom()
		if err != nil {
			return read, err
		}
		n, err := r.Read(b)
		if n > 0 {
			w.publish(n)
			read += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, err
		}
	}
}

func (w *PipeWriter) publish(n int) {
	if w.ring.publish(n) {
		w.end.wakeReader()
	}
}

// awaitRoom returns where to write, once there is room.
func (w *PipeWriter) awaitRoom() ([]byte, error) {
	for {
		select {
		case <-w.gone:
			return nil, fmt.Errorf("channel: write to a pipe: %w", net.ErrClosed)
		default:
		}
		b, err := w.ring.room()
		if err != nil || len(b) > 0 {
			return b, err
		}
		w.ring.want()
		if b, err = w.ring.room(); err != nil || len(b) > 0 {
			return b, err
		}
		select {
		case <-w.room:
		case <-w.gone:
		}
	}
}

// CloseWrite tells the reader that nothing follows.
func (w *PipeWriter) CloseWrite() error { return w.end.conn.CloseWrite() }

// Close tells the reader that nothing follows, and returns when nothing of this
// end goes on any more but a write, which ends soon.
func (w *PipeWriter) Close() error {
	err := w.end.close()
	<-w.gone
	return err
}
