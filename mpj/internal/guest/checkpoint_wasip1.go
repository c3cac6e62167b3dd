package guest

import (
	"errors"
	"io"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// A step is what the host wants to be done of a checkpoint.
type step struct{ what, bytes, size uint32 }

// The steps, and how they have been done.
const (
	stepNone = iota
	stepSave
	stepRestore

	outcomeWell   = 0
	outcomeFailed = 1
	outcomeNot    = 2
)

// Checkpoint makes what has reached this process so far superfluous for those that join
// its rank later, or lets it go on from such a checkpoint.
func (e *Engine) Checkpoint(c words.Checkpoint) error {
	var s step
	code, text := e.call(func(later uint32) int32 { return hostCheckpoint(unsafe.Pointer(&s), later) })
	if code != codeOK || s.what == stepNone {
		return e.failed(code, text)
	}
	own, outcome, err := s.do(c)
	code, text = e.call(func(later uint32) int32 {
		return hostCheckpointEnd(outcome, address(own), uint32(len(own)), unsafe.Pointer(&s), later)
	})
	if err != nil {
		return err
	}
	return e.failed(code, text)
}

// do does a step.
func (s step) do(c words.Checkpoint) (own []byte, outcome uint32, err error) {
	if s.what == stepRestore {
		if err = c.TakeOwn(taken(s.bytes, s.size)); err == nil {
			err = c.Restore(stateReader{})
		}
	} else if err = c.Save(stateWriter{}); err == nil {
		var ok bool
		if own, ok = c.Own(); !ok {
			outcome = outcomeNot
		}
	}
	if err != nil {
		outcome = outcomeFailed
	}
	return own, outcome, err
}

// stateWriter writes the state of the program.
type stateWriter struct{}

func (stateWriter) Write(b []byte) (int, error) {
	if code := hostCheckpointWrite(address(b), uint32(len(b))); code != codeOK {
		return 0, errors.New(textOf(code))
	}
	return len(b), nil
}

// stateReader reads it.
type stateReader struct{}

func (stateReader) Read(b []byte) (int, error) {
	n := hostCheckpointRead(address(b), uint32(len(b)))
	switch {
	case n < 0:
		return 0, errors.New(textOf(codeOther))
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return int(n), nil
}

// Printed returns how many records of each output stream this process has written, once
// the user has them; not ok if that takes long.
func (e *Engine) Printed() (records [2]uint64, ok bool) {
	code, _ := e.call(func(later uint32) int32 { return hostPrinted(unsafe.Pointer(&records), later) })
	return records, code == codeOK
}

// Skip says that this process, which has written less, goes on behind so many records.
func (e *Engine) Skip(records [2]uint64) error {
	code, text := e.call(func(later uint32) int32 { return hostSkip(unsafe.Pointer(&records), later) })
	return e.failed(code, text)
}
