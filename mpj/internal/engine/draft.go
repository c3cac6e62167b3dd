package engine

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A draft is an incomplete checkpoint: the program's state, in a file. It does not report file
// errors to the program before finish, because other replicas do not have the same errors.
type draft struct {
	file   *os.File // nil once the log owns the file or the file is closed
	to     *bufio.Writer
	limit  uint64
	length uint64 // length of the state in bytes
	err    error
	state  *os.File // the file for reading, even after the log owns it
}

const draftBuffer = 256 << 10

// draft returns a new draft. It returns nil if this process cannot make a checkpoint now, because a
// replica is reading the log, this process is behind its rank, there is no log, or the file cannot
// be created. The first call ends the prologue.
func (p *MessageLog) draft(v view.View, behind bool) *draft {
	p.split()
	p.mu.Lock()
	defer p.mu.Unlock()
	if behind || p.prologue == nil || p.isRead(v) {
		return nil
	}
	return p.newDraft()
}

// split ends the prologue, if it has not ended.
func (p *MessageLog) split() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prologue != nil || p.current == nil {
		return
	}
	f, err := p.unnamed()
	if err != nil {
		p.dropLog(err.Error())
		return
	}
	p.prologue, p.current = p.current, &segment{file: f}
}

// newDraft returns an empty draft, or nil if it cannot create a file.
func (p *MessageLog) newDraft() *draft {
	f, err := p.unnamed()
	if err != nil {
		return nil
	}
	d := &draft{file: f, state: f, limit: p.limit}
	d.to = bufio.NewWriterSize(io.NewOffsetWriter(f, protection.StateHeader), draftBuffer)
	return d
}

// Write implements io.Writer. It never fails; finish reports errors.
func (d *draft) Write(b []byte) (int, error) {
	switch d.length += uint64(len(b)); {
	case d.err != nil:
	case d.length > d.limit:
		d.err = fmt.Errorf("checkpoint exceeds %d bytes", d.limit)
	default:
		_, d.err = d.to.Write(b)
	}
	return len(b), nil
}

// finish ends the state, and reports whether the file contains the complete state.
func (d *draft) finish() bool {
	if d.err == nil {
		d.err = d.to.Flush()
	}
	if d.err == nil {
		_, d.err = d.file.WriteAt(protection.AppendState(nil, d.length), 0)
	}
	d.to = nil
	return d.err == nil
}

// reader returns a reader of the program's state, without its header.
func (d *draft) reader() io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(d.state, protection.StateHeader, int64(d.length)), draftBuffer)
}

// discard closes the file unless the log owns it.
func (d *draft) discard() {
	if d.file != nil {
		d.file.Close()
		d.file = nil
	}
}

// commit replaces the current part of the log by d and the records of a snapshot. The log then owns
// the file of d. commit does nothing if a replica has begun to read the log or the log would exceed
// its limit. It returns the segment to write, or nil.
func (p *MessageLog) commit(d *draft, records []byte, v view.View) *segment {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.prologue.length() + uint64(len(records))
	if p.prologue == nil || p.prologue.file == nil || p.isRead(v) || before+d.length > p.limit {
		return nil
	}
	p.current.close()
	p.current = &segment{file: d.file, written: protection.StateHeader + d.length, tail: records}
	p.resumed, d.file = true, nil
	p.made++
	return p.due()
}
