package engine

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A draft is a checkpoint that is being made: the program's state, in a file. What goes
// wrong with the file it keeps to itself, since other replicas know nothing of it.
type draft struct {
	file   *os.File // nil: the past has it, or nobody
	to     *bufio.Writer
	limit  uint64
	length uint64 // of the state
	err    error
	state  *os.File // to be read, even if the past has the file
}

const draftBuffer = 256 << 10

// draft returns a new draft, or nil if no checkpoint is to be made now: somebody reads
// the log, or this process is behind its rank, or there is no log. The first call ends
// the prologue.
func (p *Past) draft(v view.View, behind bool) *draft {
	p.split()
	p.mu.Lock()
	defer p.mu.Unlock()
	if behind || p.prologue == nil || p.isRead(v) {
		return nil
	}
	return p.newDraft()
}

// split ends the prologue, if it has not ended.
func (p *Past) split() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prologue != nil || p.current == nil {
		return
	}
	f, err := p.unnamed()
	if err != nil {
		p.letGo(err.Error())
		return
	}
	p.prologue, p.current = p.current, &segment{file: f}
}

// newDraft returns an empty draft, or nil if there can be no file.
func (p *Past) newDraft() *draft {
	f, err := p.unnamed()
	if err != nil {
		return nil
	}
	d := &draft{file: f, state: f, limit: p.limit}
	d.to = bufio.NewWriterSize(io.NewOffsetWriter(f, protection.StateHeader), draftBuffer)
	return d
}

// Write implements io.Writer. It never fails: finish says so.
func (d *draft) Write(b []byte) (int, error) {
	switch d.length += uint64(len(b)); {
	case d.err != nil:
	case d.length > d.limit:
		d.err = fmt.Errorf("checkpoint is longer than %d bytes", d.limit)
	default:
		_, d.err = d.to.Write(b)
	}
	return len(b), nil
}

// finish ends the state, and reports whether all of it is in the file.
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

// reader returns what reads the state.
func (d *draft) reader() io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(d.state, protection.StateHeader, int64(d.length)), draftBuffer)
}

// discard gives the file up unless it has become the past.
func (d *draft) discard() {
	if d.file != nil {
		d.file.Close()
		d.file = nil
	}
}

// commit lets the log begin with d and the records of a snapshot, unless somebody has
// begun to read it. It returns the segment that is to be written, if there is one.
func (p *Past) commit(d *draft, records []byte, v view.View) *segment {
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
