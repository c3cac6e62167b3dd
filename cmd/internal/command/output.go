package command

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// ErrUnread is the error of a write to an interrupted Output that has no reader.
var ErrUnread = errors.New("timed out writing output that is not read")

// unreadTimeout is how long a write to an interrupted Output may block.
const unreadTimeout = time.Second

// An Output is standard output or standard error. A write blocks while the reader does not read, as on
// any pipe. After Interrupt the blocking time is bounded, so that the command can end. Writes must not
// overlap.
type Output struct {
	w           io.Writer
	interrupt   sync.Once
	interrupted chan struct{}

	mu     sync.Mutex
	unread bool // a write is blocked and was given up
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output {
	return &Output{w: w, interrupted: make(chan struct{})}
}

// Unwrap returns the underlying writer.
func (o *Output) Unwrap() io.Writer { return o.w }

// Interrupt bounds the time of the current write and of later ones. After a write has timed out, all
// writes fail with ErrUnread.
func (o *Output) Interrupt() { o.interrupt.Do(func() { close(o.interrupted) }) }

type written struct {
	n   int
	err error
}

// Write writes p, which must not change after a write that fails with ErrUnread.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unread {
		return 0, ErrUnread
	}
	done := make(chan written, 1)
	go func() { // ends when p is written, or with the process
		n, err := o.w.Write(p)
		done <- written{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-o.interrupted:
	}
	late := time.NewTimer(unreadTimeout)
	defer late.Stop()
	select {
	case r := <-done:
		return r.n, r.err
	case <-late.C:
		o.unread = true
		return 0, ErrUnread
	}
}

// File returns the file that w writes to, directly or as an Output, or nil.
func File(w io.Writer) *os.File {
	if o, ok := w.(*Output); ok {
		w = o.w
	}
	f, _ := w.(*os.File)
	return f
}
