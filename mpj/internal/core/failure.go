package core

import (
	"context"
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A DeadlockError ends the calls of deadlocked ranks.
type DeadlockError struct{ Report string }

// Error returns the report.
func (e *DeadlockError) Error() string { return e.Report }

// Failf returns an error of a call on c.
func (c *Comm) Failf(class Class, format string, args ...any) *Error {
	return c.own(Failf(class, format, args...))
}

// own makes e an error of a call on c.
func (c *Comm) own(e *Error) *Error {
	e.Comm, e.Rank = c, c.rank
	return e
}

// wrap returns the error of a call on c for an error of the engine. It returns nil for nil.
func (c *Comm) wrap(err error) error {
	if err == nil {
		return nil
	}
	return c.Translate(err)
}

// Translate returns the error of a call on c for an error of the engine or of a collective.
func (c *Comm) Translate(err error) *Error {
	var own *Error
	var truncated *engineapi.TruncateError
	var mismatch *collective.MismatchError
	var order *collective.OrderError
	var failed *collective.FailedError
	var stuck *DeadlockError
	switch {
	case errors.As(err, &own) && own.Comm == nil && c != nil: // of another communicator, which is nil
		return c.own(own)
	case own != nil:
		return own
	case errors.As(err, &failed):
		return c.Failf(ClassOfCause(failed.Cause), "in communicator %q %v", c.Name(), failed)
	case errors.As(err, &order):
		return c.Failf(ErrComm, "in communicator %q %v", c.Name(), order)
	case errors.As(err, &stuck):
		return c.Failf(ErrDeadlock, "%s", stuck.Report)
	case errors.As(err, &mismatch):
		return c.Failf(ClassOfCause(mismatch), "%v", mismatch)
	case errors.As(err, &truncated):
		return c.Failf(ErrTruncate, "%s", c.truncation(truncated))
	case errors.Is(err, engineapi.ErrReplicated):
		return c.own(Wrap(ErrUnsupported, err))
	case errors.Is(err, engineapi.ErrClosed):
		return c.own(Wrap(ErrFinalized, nil))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e := c.Failf(ErrOther, ContextEnded)
		e.Err = err
		return e
	}
	return c.own(Wrap(ErrOther, err))
}

// ContextEnded is the detail of the errors of calls that the end of the world's context ends.
const ContextEnded = "the context of the world ended"

// ClassOfCause returns the class of an error that makes a collective fail.
func ClassOfCause(err error) Class {
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
	t.Status.Source = c.RankOf(e.Status.Source)
	return t.Error()
}
