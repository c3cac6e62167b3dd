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

// A process that is to make a checkpoint asks when the user has all that it has printed,
// and one that goes on from a checkpoint says that it goes on behind what the user has.
// What it has written before it asks may still be in the pipes.
//
//	process -- "line" --> pipe --> drain --> box --> user
//	   |                             ^        |
//	   +-- Flush --> interrupt ------+        +-- all acknowledged --> Flushed
//
// A full box holds up drain all the same: the answer then waits until the user has got more.

// A flush is the question of a process, until it is answered.
type flush struct {
	number  uint64 // of this process's questions, from 1
	count   uint64
	behind  *[2]uint64 // it goes on behind these records; nil: it asks
	drained [streams]bool
}

// flush takes the question. The one before has had no answer in time.
func (p *process) flush(m proclink.Message) {
	p.flushing = &flush{number: p.flushes.Add(1), count: m.Count, behind: m.Records}
	for s := range p.out {
		if p.out[s].eof {
			p.flushing.drained[s] = true
			continue
		}
		p.live.pipes[s].SetReadDeadline(time.Now()) // an error means that it has ended
	}
	p.answerFlush()
}

// A drainer reads an output stream of a process. A Flush interrupts it; it then reads without waiting until the
// pipe is empty.
type drainer struct {
	pipe  *os.File
	raw   syscall.RawConn
	asked *atomic.Uint64 // number of the latest Flush, which is counted before the deadline is set
	flush uint64         // number of the Flush that it reads for; 0: none
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
	if n == 0 && err == nil { // there is nothing, or the end, which the next read finds
		empty, d.flush = d.flush, 0
	}
	return n, empty, err
}

// emptied records that a stream's pipe has been empty since the Flush of that number.
func (p *process) emptied(stream int, number uint64) {
	if p.flushing != nil && p.flushing.number == number {
		p.flushing.drained[stream] = true
		p.answerFlush()
	}
}

// answerFlush answers the process if it has asked and the answer is known.
func (p *process) answerFlush() {
	f := p.flushing
	if f == nil || f.drained != [streams]bool{true, true} {
		return
	}
	answer := proclink.Message{Type: proclink.Flushed, Count: f.count, Records: f.behind}
	if f.behind != nil {
		for s := range p.out {
			if !p.out[s].box.Skip(f.behind[s]) {
				p.babbles(fmt.Errorf("it goes on behind %d records of stream %d and has written more", f.behind[s], s+1))
				return
			}
			p.out[s].sum = nil // nobody knows what came before
		}
	} else if records, whole, all := p.shown(); !whole {
		answer.Records = nil
	} else if answer.Records = &records; !all {
		return
	}
	p.flushing = nil
	p.tell(answer, nil)
}

// shown returns how many records of each stream there are, whether these are all that
// has been printed, and whether the user has them all.
func (p *process) shown() (records [streams]uint64, whole, all bool) {
	whole, all = true, true
	for s := range p.out {
		n, shown := p.out[s].box.Shown()
		records[s], all = n, all && shown
		whole = whole && !p.out[s].box.Unfinished()
	}
	return records, whole, all
}

// readNow reads what is there without waiting for more: nothing is no error.
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
