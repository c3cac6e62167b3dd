package messagelog

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Draft is a checkpoint that the log does not own yet: the program's state, in a file. It does not report file
// errors to the program before Finish, because other replicas do not have the same errors.
type Draft struct {
	file   *os.File // nil once the log owns the file or the file is closed
	to     *bufio.Writer
	limit  uint64
	length uint64 // length of the state in bytes
	err    error
	state  *os.File // the file for reading, even after the log owns it
}

const draftBuffer = 256 << 10

// BeginCheckpoint returns the draft of a checkpoint. It returns nil if this process cannot make a
// checkpoint now, because a replica of view v is reading the log, this process is behind its rank,
// there is no log, or the file cannot be created. The first call ends the prologue.
func (l *Log) BeginCheckpoint(v view.View, behind bool) *Draft {
	l.EndPrologue()
	l.mu.Lock()
	defer l.mu.Unlock()
	if behind || l.prologue == nil || l.isRead(v) {
		return nil
	}
	return l.NewDraft()
}

// EndPrologue ends the prologue, if it has not ended.
func (l *Log) EndPrologue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prologue != nil || l.current == nil {
		return
	}
	f, err := l.unnamed()
	if err != nil {
		l.drop(err.Error())
		return
	}
	l.prologue, l.current = l.current, &segment{file: f}
}

// NewDraft returns an empty draft, or nil if it cannot create a file.
func (l *Log) NewDraft() *Draft {
	f, err := l.unnamed()
	if err != nil {
		return nil
	}
	d := &Draft{file: f, state: f, limit: l.limit}
	d.to = bufio.NewWriterSize(io.NewOffsetWriter(f, protection.StateHeader), draftBuffer)
	return d
}

// Write implements io.Writer. It never fails; Finish and Err report errors.
func (d *Draft) Write(b []byte) (int, error) {
	switch d.length += uint64(len(b)); {
	case d.err != nil:
	case d.length > d.limit:
		d.err = fmt.Errorf("checkpoint exceeds %d bytes", d.limit)
	default:
		_, d.err = d.to.Write(b)
	}
	return len(b), nil
}

// Err returns the first error of the draft.
func (d *Draft) Err() error { return d.err }

// Finish ends the state, and reports whether the file contains the complete state.
func (d *Draft) Finish() bool {
	if d.err == nil {
		d.err = d.to.Flush()
	}
	if d.err == nil {
		_, d.err = d.file.WriteAt(protection.AppendState(nil, d.length), 0)
	}
	d.to = nil
	return d.err == nil
}

// Reader returns a reader of the program's state, without its header.
func (d *Draft) Reader() io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(d.state, protection.StateHeader, int64(d.length)), draftBuffer)
}

// Discard closes the file unless the log owns it.
func (d *Draft) Discard() {
	if d.file != nil {
		d.file.Close()
		d.file = nil
	}
}

// Commit replaces the current part of the log by d and the records of a snapshot. The log then owns
// the file of d. Commit does nothing if a replica of view v has begun to read the log or the log would
// exceed its limit. If write is not nil, the caller must call it, as for Keep.
func (l *Log) Commit(d *Draft, records []byte, v view.View) (write func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.prologue.length() + uint64(len(records))
	if l.prologue == nil || l.prologue.file == nil || l.isRead(v) || before+d.length > l.limit {
		return nil
	}
	l.current.close()
	l.current = &segment{file: d.file, written: protection.StateHeader + d.length, tail: records}
	l.resumed, d.file = true, nil
	l.made++
	return l.due()
}
