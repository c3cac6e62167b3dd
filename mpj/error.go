package mpj

import (
	"context"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A Class is the kind of an error, as in MPI's error classes. Test for a class with errors.Is(err,
// mpj.ErrTruncate).
type Class string

// Error classes.
const (
	ErrArg       Class = "invalid argument"
	ErrComm      Class = "invalid communicator"
	ErrDeadlock  Class = "deadlock"
	ErrDims      Class = "invalid dimensions"
	ErrGroup     Class = "invalid group"
	ErrKeyval    Class = "invalid attribute key"
	ErrTopology  Class = "invalid topology"
	ErrBuffer    Class = "buffers of unequal or too small length"
	ErrCount     Class = "invalid count"
	ErrFinalized Class = "the world is finalized"
	ErrOther     Class = "failed"
	ErrPending   Class = "never received or waited for"
	ErrOp        Class = "invalid operation"
	ErrRank      Class = "invalid rank"
	ErrRoot      Class = "invalid root"
	ErrTag       Class = "invalid tag"
	ErrTruncate  Class = "message longer than the receive buffer"
	ErrType      Class = "invalid datatype"
	// ErrContext is the class of a call whose context argument has ended.
	ErrContext Class = "the context of the call ended"
	// ErrRequest is the class of a call on a request or message that does not allow the call.
	ErrRequest Class = "invalid request"
	// ErrUnsupported is the class of operations that are not available, for example with replicas.
	ErrUnsupported Class = "not supported"
)

// Error makes a Class usable with errors.Is.
func (c Class) Error() string { return string(c) }

// An Error is the error type that all functions of this package return.
type Error struct {
	Class  Class
	Op     string // function that failed, such as "Recv"
	Rank   int    // rank in the communicator of the call, or Undefined
	Detail string // description of the argument or message
	Err    error  // underlying cause, or nil

	handled bool // whether the communicator's error handler was called
}

// Error names the function, the class and, if known, the rank, the detail and the cause.
func (e *Error) Error() string {
	s := fmt.Sprintf("mpj.%s: %s", e.Op, e.Class)
	if e.Rank >= 0 {
		s = fmt.Sprintf("mpj.%s at rank %d: %s", e.Op, e.Rank, e.Class)
	}
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

// failf returns the error of function op, which was called without a communicator.
func failf(class Class, op, format string, args ...any) error {
	return &Error{Class: class, Op: op, Rank: Undefined, Detail: fmt.Sprintf(format, args...)}
}

// callFailed returns the error of function op, which was called without a communicator, for an error
// of package core. It returns nil for nil.
func callFailed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fault(op, err)
}

// fault returns the error of function op, which makes a datatype or a Group, for an error of package
// core or layout. Those of package layout have the class ErrType.
func fault(op string, err error) *Error {
	var e *core.Error
	if !errors.As(err, &e) {
		e = core.Wrap(core.ErrType, err)
	}
	return &Error{Class: Class(e.Class.Error()), Op: op, Rank: Undefined, Detail: e.Detail, Err: e.Err}
}

// failf returns the error of function op on c.
func (c *Comm) failf(class Class, op, format string, args ...any) error {
	return c.handle(&Error{Class: class, Op: op, Detail: fmt.Sprintf(format, args...)})
}

// wrap returns the *Error of function op on c for an error from a lower layer. It returns nil, and
// an *Error that was already handled, unchanged.
func (c *Comm) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return c.wrapped(op, err)
}

// wrapped is wrap for a non-nil error. It is a separate function so that wrap is inlined, which
// keeps messages cheap.
func (c *Comm) wrapped(op string, err error) error {
	var truncated *engineapi.TruncateError
	var mismatch *collective.MismatchError
	var order *collective.OrderError
	var failed *collective.FailedError
	var ready *Error
	var stuck *deadlockError
	switch {
	case errors.As(err, &ready):
		if ready.handled {
			return err
		}
		return c.handle(ready)
	case errors.As(err, &failed):
		return c.failf(classOfCause(failed.Cause), op, "in communicator %q %v", c.Name(), failed)
	case errors.As(err, &order):
		return c.failf(ErrComm, op, "in communicator %q %v", c.Name(), order)
	case errors.As(err, &stuck):
		return c.failf(ErrDeadlock, op, "%s", stuck.report)
	case errors.As(err, &mismatch):
		return c.failf(classOfCause(mismatch), op, "%v", mismatch)
	case errors.As(err, &truncated):
		return c.failf(ErrTruncate, op, "%s", c.truncation(truncated))
	case errors.Is(err, engineapi.ErrReplicated):
		return c.handle(&Error{Class: ErrUnsupported, Op: op, Err: err})
	case errors.Is(err, engineapi.ErrClosed):
		return c.handle(&Error{Class: ErrFinalized, Op: op})
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return c.handle(&Error{Class: ErrOther, Op: op, Detail: "the context of the world ended", Err: err})
	}
	return c.handle(&Error{Class: ErrOther, Op: op, Err: err})
}

// classOfCause returns the class of an error that makes a collective fail.
func classOfCause(err error) Class {
	var mismatch *collective.MismatchError
	var order *collective.OrderError
	switch {
	case errors.As(err, &order):
		return ErrComm
	case !errors.As(err, &mismatch):
		return ErrOther
	case mismatch.Got > mismatch.Want:
		return ErrTruncate
	}
	return ErrCount
}

// truncation describes a truncated message with the ranks of c.
func (c *Comm) truncation(e *engineapi.TruncateError) string {
	t := *e
	t.Status.Source = c.rankOf(e.Status.Source)
	return t.Error()
}

// handle completes an error of c that is about to be returned, and passes it to the error handler.
func (c *Comm) handle(err *Error) error {
	err.Rank, err.handled = c.rank, true
	if h := c.Errhandler(); h != nil {
		return h(c, err)
	}
	return err
}

// A deadlockError ends the calls of deadlocked ranks.
type deadlockError struct{ report string }

func (e *deadlockError) Error() string { return e.report }
