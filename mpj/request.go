package mpj

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// A Request is an operation in progress: a send, a receive or a collective. It is active until a
// Wait or Test has reported it complete. Wait and Test of an inactive or nil request return at once,
// with an empty Status and no error. The Status of an operation that received no message, such as a
// send, is also empty: Source is AnySource, Tag is AnyTag, and Size is 0.
//
// A persistent request, which SendInit or RecvInit returns, is active from each Start until it is
// reported complete.
//
// Only one goroutine at a time may use a request.
type Request core.Request

// Wait waits until r is complete.
func (r *Request) Wait() (Status, error) {
	s, err := (*core.Request)(r).Wait()
	return Status(s), errorOf("Wait", err)
}

// Test reports whether r is complete and, if so, returns what Wait would return.
func (r *Request) Test() (s Status, done bool, err error) {
	outcome, done, err := (*core.Request)(r).Test()
	return Status(outcome), done, errorOf("Test", err)
}

// GetStatus is like Test, but leaves r unchanged: an active request stays active, and Wait reports
// it later.
func (r *Request) GetStatus() (s Status, done bool, err error) {
	outcome, done, err := (*core.Request)(r).GetStatus()
	return Status(outcome), done, errorOf("GetStatus", err)
}

// Cancel cancels a receive that no message has matched yet. Wait for the request in any case: the
// field Cancelled of its Status reports whether it was cancelled. Sends are not cancelled, as MPI-4
// allows. With replicas, Cancel fails with ErrUnsupported, because a message may have reached one
// replica but not another.
func (r *Request) Cancel() error { return errorOf("Cancel", (*core.Request)(r).Cancel()) }

// Waitall waits for all requests, also if one fails. It returns their statuses in order. If requests
// have failed, the error is of type *RequestsError and says which and how.
func Waitall(requests ...*Request) ([]Status, error) {
	statuses := make([]Status, len(requests))
	errs := core.Waitall(coreRequests(requests), coreStatuses(statuses))
	return statuses, requestsError("Waitall", nil, errs)
}

// Waitany waits for one of the active requests and returns its index, or Undefined if no request is
// active.
func Waitany(requests ...*Request) (int, Status, error) {
	i, s, err := core.Waitany(coreRequests(requests))
	return i, Status(s), errorOf("Waitany", err)
}

// Waitsome waits for at least one of the active requests and returns the indices and statuses of all
// completed requests. It returns no indices if no request is active. If requests have failed, the
// error is of type *RequestsError and says which and how.
func Waitsome(requests ...*Request) ([]int, []Status, error) {
	done, err := core.Waitsome(coreRequests(requests))
	return completed("Waitsome", done, err)
}

// Testall reports whether all requests are complete, and if so, returns what Waitall would return.
func Testall(requests ...*Request) (statuses []Status, done bool, err error) {
	done, err = core.Testall(coreRequests(requests))
	if err != nil || !done {
		return nil, false, errorOf("Testall", err)
	}
	statuses, err = Waitall(requests...)
	return statuses, true, err
}

// Testany is the nonblocking form of Waitany: done reports whether a request was complete or no
// request was active.
func Testany(requests ...*Request) (index int, s Status, done bool, err error) {
	i, outcome, done, err := core.Testany(coreRequests(requests))
	return i, Status(outcome), done, errorOf("Testany", err)
}

// Testsome is the nonblocking form of Waitsome: it may return no indices.
func Testsome(requests ...*Request) ([]int, []Status, error) {
	done, err := core.Testsome(coreRequests(requests))
	return completed("Testsome", done, err)
}

// completed returns the results of op, which has found requests complete or has failed.
func completed(op string, done core.Completion, err error) ([]int, []Status, error) {
	if err != nil {
		return nil, nil, errorOf(op, err)
	}
	statuses := make([]Status, len(done.Statuses))
	copy(coreStatuses(statuses), done.Statuses)
	return done.Indices, statuses, requestsError(op, done.Indices, done.Errs)
}

// coreRequests returns the same requests as those of package core. The two types of pointers have the
// same representation, because Request is defined as core.Request.
func coreRequests(requests []*Request) []*core.Request {
	return unsafe.Slice((**core.Request)(unsafe.Pointer(unsafe.SliceData(requests))), len(requests))
}

// coreStatuses returns the same statuses as those of package core, which have the same fields.
func coreStatuses(statuses []Status) []core.Status {
	return unsafe.Slice((*core.Status)(unsafe.Pointer(unsafe.SliceData(statuses))), len(statuses))
}

// A RequestsError is the error of Waitall, Waitsome, Testall and Testsome if requests have failed.
// Its class is ErrInStatus. It also has the classes of the errors that it contains, so that
// errors.Is(err, ErrTruncate) reports whether a message was too long.
type RequestsError struct {
	// Errs[i] is the error of the request whose status is statuses[i] in the results of the call, or
	// nil if that request has not failed.
	Errs []error

	indices []int // of the requests; nil for all in order
}

// Error contains one line for each request that has failed, with the index of the request.
func (e *RequestsError) Error() string {
	var lines []string
	for i, err := range e.Errs {
		if err == nil {
			continue
		}
		if e.indices != nil {
			i = e.indices[i]
		}
		lines = append(lines, fmt.Sprintf("request %d: %v", i, err))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the class, and the errors of the requests that have failed.
func (e *RequestsError) Unwrap() []error {
	all := []error{ErrInStatus}
	for _, err := range e.Errs {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// requestsError returns the error of op for the errors of requests, or nil if there are none.
func requestsError(op string, indices []int, errs []error) error {
	if errs == nil {
		return nil
	}
	for i, err := range errs {
		errs[i] = errorOf(op, err)
	}
	return &RequestsError{errs, indices}
}
