package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
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

// flush handles the request. It replaces an earlier one that was not answered in time.
func (p *process) flush(m proclink.Message) {
	p.flushing = &flush{number: p.flushes.Add(1), count: m.Count, behind: m.Records}
	for s := range p.out {
		if p.out[s].eof {
			p.flushing.drained[s] = true
			continue
		}
		p.live.pipes[s].SetReadDeadline(time.Now()) // an error means that the pipe has ended
	}
	p.answerFlush()
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

// read reads the next bytes. If empty is not 0, the pipe has been empty since the Flush of that number.
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

// pipeEmptied records that a stream's pipe has been empty since the Flush of that number.
func (p *process) pipeEmptied(stream int, number uint64) {
	if p.flushing != nil && p.flushing.number == number {
		p.flushing.drained[stream] = true
		p.answerFlush()
	}
}

// answerFlush answers the pending request once the answer is known.
func (p *process) answerFlush() {
	f := p.flushing
	if f == nil || f.drained != [streams]bool{true, true} {
		return
	}
	answer := proclink.Message{Type: proclink.Flushed, Count: f.count, Records: f.behind}
	if f.behind != nil {
		for s := range p.out {
			if !p.out[s].box.Skip(f.behind[s]) {
				p.protocolError(fmt.Errorf("it resumes after %d records of stream %d and has written more", f.behind[s], s+1))
				return
			}
			p.out[s].sum = nil // the earlier output is unknown
		}
	} else if records, whole, all := p.shown(); !whole {
		answer.Records = nil
	} else if answer.Records = &records; !all {
		return
	}
	p.flushing = nil
	p.send(answer, nil)
}

// shown returns the number of records of each stream. whole reports whether these are all the output, and
// all whether the user has received them all.
func (p *process) shown() (records [streams]uint64, whole, all bool) {
	whole, all = true, true
	for s := range p.out {
		n, shown := p.out[s].box.Shown()
		records[s], all = n, all && shown
		whole = whole && !p.out[s].box.Unfinished()
	}
	return records, whole, all
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
