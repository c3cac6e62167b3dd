package launch

import (
	"fmt"
	"hash"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/outbox"
)

// An account holds the checksums of all that a process has sent, by its own account.
type account struct {
	sums   []protection.Sum
	summed bool // the process has sent these checksums
	sent   bool // the submitter has received the account
}

// An output is one output stream of a process.
type output struct {
	box outbox.Box
	eof bool      // the pipe has ended
	all uint64    // bytes received
	sum hash.Hash // hash of the bytes received; nil: unknown or not needed

	printed uint64        // number of bytes in sum
	room    chan struct{} // receives a token when a full box has room again
}

// readSize is the number of bytes read from a pipe at a time, which is the capacity of a pipe.
const readSize = 64 << 10

// drain reads one output stream of the process to its end. While the box is full, it does not read, so the
// pipe fills and the program blocks in its write.
func (p *process) drain(stream int) {
	defer p.job.running.Done()
	buf := make([]byte, readSize)
	o := &p.out[stream]
	d, err := newDrainer(p.live.pipes[stream], &p.flushes)
	for {
		var n int
		var empty uint64
		if err == nil {
			n, empty, err = d.read(buf)
		}
		full, ok := query(p.job, func() bool {
			o.append(buf[:n])
			if err != nil {
				o.eof = true
				p.settle(stream)
				empty = p.flushes.Load()
			}
			p.pipeEmptied(stream, empty)
			return o.box.Full()
		})
		if !ok || err != nil {
			return
		}
		if full {
			select {
			case <-o.room:
			case <-p.job.done:
				return
			}
		}
	}
}

// append adds bytes read from the pipe.
func (o *output) append(b []byte) {
	o.all += uint64(len(b))
	if o.sum != nil {
		o.sum.Write(b)
		o.printed += uint64(len(b))
	}
	o.box.Append(b)
}

// settle closes a box once its pipe has ended and the process's exit is known. A killed process may have
// stopped in the middle of a line.
func (p *process) settle(stream int) {
	if o := &p.out[stream]; o.eof && p.exit != nil {
		o.box.Close(p.exit.Signal == "" && p.reason == "")
		if stream == stdout {
			p.reportAccount()
		}
	}
}

// reportAccount reports to the submitter the checksums of a replica that has ended successfully. They exclude
// standard error, which may contain times and addresses.
func (p *process) reportAccount() {
	if p.endedWell() && p.job.spec.R > 1 && !p.failedInView && !p.account.sent {
		p.account.sent = true
		p.job.send(accountOf(p))
	}
}

// endedWell reports whether the process has ended with status 0, and finalized if it called mpj.Init.
func (p *process) endedWell() bool {
	return p.exit != nil && p.exit.Code == 0 && p.exit.Signal == "" && p.reason == "" && p.initialized == p.finalized
}

// drained reports whether the user has received all output of the process.
func (p *process) drained() bool {
	for s := range p.out {
		if _, all := p.out[s].box.Shown(); !all || !p.out[s].eof {
			return false
		}
	}
	return true
}

// emitted drops the records of each stream that the user has received.
func (p *process) emitted(counts [streams]uint64) {
	for s, count := range counts {
		o := &p.out[s]
		o.box.Acknowledge(count)
		if !o.box.Full() {
			select {
			case o.room <- struct{}{}:
			default:
			}
		}
	}
	p.answerFlush()
}

// rewind makes this peer send the output that the user has not received again.
func (p *process) rewind() {
	for s := range p.out {
		p.out[s].box.Rewind()
	}
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
