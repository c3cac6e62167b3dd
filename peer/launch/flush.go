package launch

import (
	"cmp"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// A process that is about to make a checkpoint asks when the user has received all its output. A process
// that resumes from a checkpoint states after which records it continues. In both cases, earlier output may
// still be in the pipes.
//
//	process -- "line" --> pipe --> drain --> box --> user
//	   |                             ^        |
//	   +-- Flush --> interrupt ------+        +-- all acknowledged --> Flushed
//
// A full box still blocks drain. The answer then waits until the user has received more.

// A flush is a process's request, until it is answered.
type flush struct {
	number  uint64 // sequence number among this process's requests, from 1
	count   uint64
	behind  *[2]uint64 // the process continues after these records; nil: it asks
	drained [streams]bool
}

// A drainer reads an output stream of a process. A Flush interrupts it; the drainer then reads without
// blocking until the pipe is empty.
type drainer struct {
	pipe  *os.File
	raw   syscall.RawConn
	asked *atomic.Uint64 // number of the latest Flush, incremented before the deadline is set
	flush uint64         // number of the Flush for which it reads; 0: none
}

func newDrainer(pipe *os.File, asked *atomic.Uint64) (*drainer, error) {
	raw, err := pipe.SyscallConn()
	return &drainer{pipe: pipe, raw: raw, asked: asked}, err
}

// read reads the next bytes. If empty is not 0, it is the number of a Flush, and the pipe was empty at some time after
// this Flush.
func (d *drainer) read(buf []byte) (n int, empty uint64, err error) {
	for {
		if d.flush == 0 {
			n, err = d.pipe.Read(buf)
		} else {
			n, err = readNow(d.raw, buf)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err := d.pipe.SetReadDeadline(time.Time{}); err != nil {
			return 0, 0, err
		}
		d.flush = d.asked.Load()
	}
	if n == 0 && err == nil { // the pipe is empty or at its end, which the next read finds
		empty, d.flush = d.flush, 0
	}
	return n, empty, err
}

// readNow reads the available bytes without waiting for more. It returns 0 and no error if there are none.
func readNow(raw syscall.RawConn, buf []byte) (n int, err error) {
	failed := raw.Read(func(fd uintptr) bool {
		for n, err = syscall.Read(int(fd), buf); errors.Is(err, syscall.EINTR); {
			n, err = syscall.Read(int(fd), buf)
		}
		return true
	})
	if errors.Is(err, syscall.EAGAIN) {
		n, err = 0, nil
	}
	return max(n, 0), cmp.Or(failed, err)
}
