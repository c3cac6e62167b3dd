package core

import "fmt"

// An Error is the error type of this package.
type Error struct {
	Class Class
	Comm  *Comm // communicator of the call, or nil
	// Call is the function that failed, if it is not the one that returns the error. It is the function
	// that made the request, for an error of Wait and similar functions.
	Call   string
	Rank   int    // rank in Comm, or Undefined
	Index  int    // index of the failed request among the requests of the call, or Undefined
	Detail string // description of the argument or message
	Err    error  // underlying cause, or nil
}

// Failf returns an error with a description of the argument or message.
func Failf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Rank: Undefined, Index: Undefined, Detail: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with a cause.
func Wrap(class Class, err error) *Error {
	return &Error{Class: class, Rank: Undefined, Index: Undefined, Err: err}
}

// Error names the class and, if known, the function, the rank, the request, the detail and the cause.
func (e *Error) Error() string {
	s := e.Class.Error()
	if e.Rank != Undefined {
		s = fmt.Sprintf("at rank %d: %s", e.Rank, s)
	}
	if e.Call != "" {
		s = e.Call + ": " + s
	}
	if e.Index != Undefined {
		s = fmt.Sprintf("request %d: %s", e.Index, s)
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
