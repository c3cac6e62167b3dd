package mpj

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
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
	ErrInfo      Class = "invalid info object"
	ErrInfoKey   Class = "invalid info key"
	ErrInfoNoKey Class = "no such info key"
	ErrInfoValue Class = "invalid info value"
	ErrInStatus  Class = "a request failed"
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

// An Error is the error type that the functions of this package return. Functions for several requests
// also return a *RequestsError, which contains an error for each request.
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

// errorOf returns the error of function op for an error of package core, and calls the error
// handler of the communicator, if the error has one. It returns nil for nil. It is short enough to be
// inlined, which keeps messages cheap.
func errorOf(op string, err error) error {
	if err == nil {
		return nil
	}
	return converted(op, err)
}

// converted is errorOf for a non-nil error. If package core could not classify the cause of err,
// because the cause is an error of this package, the cause is the result. Such a cause may contain
// the error of a context, which package core takes for that of the world.
func converted(op string, err error) error {
	e := fault(op, err)
	var ready *Error
	isReady := (e.Detail == "" || e.Detail == core.ContextEnded) && errors.As(e.Err, &ready)
	switch c := commOf(err); {
	case isReady && (ready.handled || c == nil):
		return e.Err
	case isReady:
		return c.handle(ready)
	case c == nil:
		return e
	default:
		return c.handle(e)
	}
}

// commOf returns the communicator of an error of package core, or nil.
func commOf(err error) *Comm {
	var e *core.Error
	if !errors.As(err, &e) {
		return nil
	}
	return fromBase(e.Comm)
}

// fault returns the *Error of function op for an error of package core or layout. Those of package
// layout have the class ErrType.
func fault(op string, err error) *Error {
	var e *core.Error
	if !errors.As(err, &e) {
		e = core.Wrap(core.ErrType, err)
	}
	return &Error{Class: Class(e.Class.Error()), Op: cmp.Or(e.Call, op), Rank: e.Rank, Detail: e.Detail, Err: e.Err}
}
