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

// A PipeReader is the reading end of a pipe. One goroutine at a time may read;
// SetReadDeadline and Close may be called from others.
type PipeReader struct {
	end     *pipeEnd
	ring    pipeOutput
	patient bool
	expired atomic.Bool // the read deadline is over
	closed  atomic.Bool
	over    atomic.Bool // of one with a bell: nothing follows
	rogue   atomic.Bool // of one with a bell: the writer breaks the protocol
	idle    int         // rings since sleep began that brought nothing
	woken   int         // times since the clock was last looked at
	since   time.Time   // when that was
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
	return newPipeReader(e, ring, patient), nil
}

func newPipeReader(e *pipeEnd, ring *pipeRing, patient bool) *PipeReader {
	r := &PipeReader{end: e, ring: pipeOutput{pipeRing: ring}, patient: patient}
	if r.wait = r.nothingToWaitFor; e.bell != nil {
		r.wait = r.rung
		go r.watch() // until either end is closed
	}
	return r
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
	r.idle = 0
	r.ring.doze()
	switch err := r.end.ringer.Read(r.wait); {
	case r.closed.Load():
	case r.rogue.Load():
		return errRogue
	case err == nil || r.over.Load():
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return net.ErrClosed
}

var errRogue = errors.New("channel: the writer of a pipe breaks its protocol")

// watch waits for the end of the socket, on which nothing comes to a reader that
// has a bell. It does not read what an untrusted writer sends all the same.
func (r *PipeReader) watch() {
	if n, _ := r.end.conn.Read(r.rest[:1]); n > 0 {
		r.rogue.Store(true)
	}
	r.over.Store(true)
	r.end.bell.SetReadDeadline(time.Unix(1, 0)) // to ring it could block
}

// rung reports whether sleep is over, at the bell.
func (r *PipeReader) rung(uintptr) bool {
	r.pace()
	if r.ring.ready() {
		return true
	}
	if r.idle++; r.idle > mostIdle {
		r.rogue.Store(true)
		return true
	}
	r.ring.doze() // whoever rang for bytes that are taken already believes this side awake
	return r.ring.ready() || r.over.Load()
}

// mostIdle bounds how often sleep looks in vain. An honest writer rings once too often at most.
const mostIdle = 100

// A reader with a bell that is woken wakesAtOnce times pauses until wakeTime has passed since: it takes a program less
// to ring than its peer to wake up. Meanwhile the bytes collect in the ring, which takes 256 KiB.
const (
	wakesAtOnce = 128
	wakeTime    = 2 * time.Millisecond
)

// pace pauses a reader that is woken too often.
func (r *PipeReader) pace() {
	if r.woken++; r.woken < wakesAtOnce {
		return
	}
	time.Sleep(wakeTime - time.Since(r.since)) // not at all if it is negative
	r.woken, r.since = 0, time.Now()
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
