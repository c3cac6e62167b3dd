package mpj

import (
	"context"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A Class says what kind of thing went wrong, as MPI's error classes do. Test
// for one with errors.Is(err, mpj.ErrTruncate).
type Class string

// The classes of errors.
const (
	ErrArg       Class = "invalid argument"
	ErrBuffer    Class = "buffers of unequal or too small length"
	ErrCount     Class = "invalid count"
	ErrFinalized Class = "the world is finalized"
	ErrOther     Class = "communication failed"
	ErrRank      Class = "invalid rank"
	ErrRoot      Class = "invalid root"
	ErrTag       Class = "invalid tag"
	ErrTruncate  Class = "message longer than the receive buffer"
)

// Error makes a Class usable with errors.Is.
func (c Class) Error() string { return string(c) }

// An Error is what every function of this package returns when it fails.
type Error struct {
	Class  Class
	Op     string // the function that failed, such as "Recv"
	Detail string // which argument or message, in words
	Err    error  // the cause below, or nil
}

// Error names the function, the class and the detail.
func (e *Error) Error() string {
	s := fmt.Sprintf("mpj.%s: %s", e.Op, e.Class)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the class and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Err}
}

// failf returns the error of function op.
func failf(class Class, op, format string, args ...any) error {
	return &Error{Class: class, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// wrap turns an error from below into one of function op; nil stays nil.
func wrap(op string, err error) error {
	var truncated *engine.TruncateError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &truncated):
		return failf(ErrTruncate, op, "%v", truncated)
	case errors.Is(err, engine.ErrClosed):
		return &Error{Class: ErrFinalized, Op: op}
	case errors.Is(err, context.Canceled):
		return &Error{Class: ErrOther, Op: op, Detail: "the context of the world ended", Err: err}
	}
	return &Error{Class: ErrOther, Op: op, Err: err}
}
