package channel

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A PipeReader is the reading end of a pipe. Only one goroutine at a time may read; other goroutines
// may call SetReadDeadline and Close.
type PipeReader struct {
	end     *pipeEnd
	ring    pipeOutput
	polling bool
	expired atomic.Bool // the read deadline has passed
	closed  atomic.Bool
	over    atomic.Bool // no more bytes follow; used with a bell
	rogue   atomic.Bool // the writer violated the protocol; used with a bell
	idle    int         // wake-ups without data since sleep began
	woken   int         // wake-ups since the last reading of the clock
	since   time.Time   // last reading of the clock
	rest    [64]byte    // buffer for wake-ups
	wait    func(fd uintptr) bool
}

// OpenPipeReader opens the reading end of a pipe. The caller still closes f. A polling reader polls
// the memory for a while before it sleeps. Polling is for a process, which waits for an answer; a
// peer has many pipes, so its readers sleep at once.
func OpenPipeReader(f *os.File, polling bool) (*PipeReader, error) {
	e, ring, err := openPipe(f)
	if err != nil {
		return nil, err
	}
	return newPipeReader(e, ring, polling), nil
}

func newPipeReader(e *pipeEnd, ring *pipeRing, polling bool) *PipeReader {
	r := &PipeReader{end: e, ring: pipeOutput{pipeRing: ring}, polling: polling}
	if r.wait = r.nothingToWaitFor; e.bell != nil {
		r.wait = r.rung
		go r.watch() // ends when either end is closed
	}
	return r
}

// Read reads the available bytes, or waits until bytes are available. The error is io.EOF after the
// writer has closed and everything has been read.
func (r *PipeReader) Read(p []byte) (int, error) {
	b, err := r.await(len(p))
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	r.free(n)
	return n, nil
}

// WriteTo writes all bytes to w, directly from the shared memory, until the writer has closed. The
// memory may change while w reads it.
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

// carrySize is the number of bytes that a libp2p stream puts into one frame, which has 64 KiB
// including its header. Another byte would need a second frame.
const carrySize = 64<<10 - 12

func (r *PipeReader) free(n int) {
	if r.ring.release(n) {
		r.end.wake()
	}
}

// await waits for bytes and returns at most n of them.
func (r *PipeReader) await(n int) ([]byte, error) {
	if r.expired.Load() {
		return nil, os.ErrDeadlineExceeded
	}
	if !r.ring.ready() && !(r.polling && r.look()) {
		if err := r.sleep(); err != nil {
			return nil, err
		}
	}
	b, err := r.ring.peek(n)
	if err == nil && len(b) == 0 {
		err = io.EOF // sleep ended without bytes
	}
	return b, err
}

// sleep returns when bytes are available or no more will follow.
func (r *PipeReader) sleep() error {
	r.idle = 0
	r.ring.doze()
	switch err := r.end.ringer.Read(r.wait); {
	case r.closed.Load():
	case r.rogue.Load():
		return errProtocol
	case err == nil || r.over.Load():
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return net.ErrClosed
}

var errProtocol = errors.New("channel: the writer of a pipe violated the protocol")

// watch waits for the end of the socket, on which a reader with a bell expects no bytes. If an
// untrusted writer sends bytes, watch does not read them but ends the pipe.
func (r *PipeReader) watch() {
	if n, _ := r.end.conn.Read(r.rest[:1]); n > 0 {
		r.rogue.Store(true)
	}
	r.over.Store(true)
	r.end.bell.SetReadDeadline(time.Unix(1, 0)) // not a ring of the bell, which could block
}

// rung reports whether sleep is over. It is called once before the wait, and whenever the bell
// rings.
func (r *PipeReader) rung(uintptr) bool {
	r.pace()
	if r.ring.ready() {
		return true
	}
	if r.idle++; r.idle > mostIdle {
		r.rogue.Store(true)
		return true
	}
	r.ring.doze() // a writer that rang for bytes that were already taken assumes that this side is awake
	return r.ring.ready() || r.over.Load()
}

// mostIdle bounds the wake-ups without data in one sleep. An honest writer causes at most one.
const mostIdle = 100

// A reader with a bell reads the clock at every wakesAtOnce-th wake-up. If less than wakeTime has
// passed since the last reading, it pauses for the rest of wakeTime. The reason is that a ring costs
// a program less than the wake-up costs its peer. During the pause, up to 256 KiB collect in the
// ring.
const (
	wakesAtOnce = 128
	wakeTime    = 2 * time.Millisecond
)

// pace makes a reader pause if it is woken too often.
func (r *PipeReader) pace() {
	if r.woken++; r.woken < wakesAtOnce {
		return
	}
	time.Sleep(wakeTime - time.Since(r.since)) // returns at once if negative
	r.woken, r.since = 0, time.Now()
}

// nothingToWaitFor reports whether sleep is over. It is called once before the wait, and whenever
// the socket becomes readable. It empties the socket so that the next wake-up makes the socket
// readable again.
func (r *PipeReader) nothingToWaitFor(fd uintptr) bool {
	for !r.ring.ready() {
		n, err := syscall.Read(int(fd), r.rest[:])
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false
		case n <= 0: // end of the socket; bytes written earlier are in the ring
			return true
		case !r.ring.ready():
			r.ring.doze() // as in rung
		}
	}
	return true
}

// SetReadDeadline ends reads at once if t has passed, and stops ending them if t is zero. A future t
// ends only a read that sleeps at time t. A read that polls the memory ends when it would otherwise
// sleep.
func (r *PipeReader) SetReadDeadline(t time.Time) error {
	r.expired.Store(!t.IsZero() && t.Before(time.Now()))
	if r.end.bell == nil {
		return r.end.conn.SetReadDeadline(t)
	}
	if r.over.Load() { // watch has set its own deadline
		return nil
	}
	return r.end.bell.SetReadDeadline(t)
}

// Close tells the writer that the reader has closed.
func (r *PipeReader) Close() error {
	r.closed.Store(true)
	return r.end.close()
}

// looking counts the readers that currently poll their memory. One processor always stays free for
// other work.
var looking atomic.Int32

// lookTime is the time for which a polling reader polls before it sleeps. An active process at the
// other end usually answers within this time. The reader yields to other processes after each look.
const lookTime = 300 * time.Microsecond

// look polls the memory for a while, and reports whether bytes have arrived.
func (r *PipeReader) look() bool {
	runtime.Gosched() // goroutines that the caller has just made ready run first
	if int(looking.Add(1)) >= runtime.GOMAXPROCS(0) {
		looking.Add(-1)
		return r.ring.ready()
	}
	defer looking.Add(-1)
	const looks = 16 // looks at the memory between two readings of the clock
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
