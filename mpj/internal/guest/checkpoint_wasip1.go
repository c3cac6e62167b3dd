package guest

import (
	"errors"
	"io"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A step is a step of a checkpoint that the host requests.
type step struct{ what, bytes, size uint32 }

// The steps, and their outcomes.
const (
	stepNone = iota
	stepSave
	stepRestore

	outcomeWell   = 0
	outcomeFailed = 1
	outcomeNot    = 2
)

// Checkpoint makes the messages received so far unnecessary for processes that join this rank
// later. In a joining process, it resumes from such a checkpoint.
func (e *Engine) Checkpoint(c engineapi.Checkpoint) error {
	var s step
	code, text := e.host.call(func(later uint32) int32 { return hostCheckpoint(unsafe.Pointer(&s), later) })
	if code != codeOK || s.what == stepNone {
		return e.host.failed(code, text)
	}
	own, outcome, err := s.do(c)
	code, text = e.host.call(func(later uint32) int32 {
		return hostCheckpointEnd(outcome, address(own), uint32(len(own)), unsafe.Pointer(&s), later)
	})
	if err != nil {
		return err
	}
	return e.host.failed(code, text)
}

// do performs a step.
func (s step) do(c engineapi.Checkpoint) (own []byte, outcome uint32, err error) {
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

// stateReader reads the state of the program.
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

// Printed returns the number of records that this process has written to each output stream, after
// the user has received them. It returns false if the user has not received them in time.
func (e *Engine) Printed() (records [2]uint64, ok bool) {
	code, _ := e.host.call(func(later uint32) int32 { return hostPrinted(unsafe.Pointer(&records), later) })
	return records, code == codeOK
}

// Skip tells the peer that the output of this process continues after the given numbers of records,
// which the user already has.
func (e *Engine) Skip(records [2]uint64) error {
	code, text := e.host.call(func(later uint32) int32 { return hostSkip(unsafe.Pointer(&records), later) })
	return e.host.failed(code, text)
}
