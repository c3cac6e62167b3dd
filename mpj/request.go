package mpj

import (
	"errors"
	"fmt"
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

// Waitall waits for all requests. It returns their statuses in order, and all their errors joined,
// each with the index of its request.
func Waitall(requests ...*Request) ([]Status, error) {
	statuses := make([]Status, len(requests))
	var failed error
	for i, r := range requests {
		s, err := r.Wait()
		statuses[i] = s
		failed = withRequest(failed, i, err)
	}
	return statuses, failed
}

// Waitany waits for one of the active requests and returns its index, or Undefined if no request is
// active.
func Waitany(requests ...*Request) (int, Status, error) {
	i, s, err := core.Waitany(coreRequests(requests))
	return i, Status(s), errorOf("Waitany", err)
}

// Waitsome waits for at least one of the active requests and returns the indices and statuses of all
// completed requests. It returns no indices if no request is active.
func Waitsome(requests ...*Request) ([]int, []Status, error) {
	done, err := core.Waitsome(coreRequests(requests))
	if err != nil {
		return nil, nil, errorOf("Waitsome", err)
	}
	return resultsOf(requests, done)
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
	if err != nil {
		return nil, nil, errorOf("Testsome", err)
	}
	return resultsOf(requests, done)
}

// coreRequests returns the same requests as those of package core. The two types of pointers have the
// same representation, because Request is defined as core.Request.
func coreRequests(requests []*Request) []*core.Request {
	return unsafe.Slice((**core.Request)(unsafe.Pointer(unsafe.SliceData(requests))), len(requests))
}

// resultsOf reports the completed requests, which have the given indices.
func resultsOf(requests []*Request, indices []int) ([]int, []Status, error) {
	var (
		statuses []Status
		failed   error
	)
	for _, i := range indices {
		s, err := requests[i].Wait()
		statuses = append(statuses, s)
		failed = withRequest(failed, i, err)
	}
	return indices, statuses, failed
}

// withRequest adds err, the error of request i, to the errors so far.
func withRequest(failed error, i int, err error) error {
	if err == nil {
		return failed
	}
	return errors.Join(failed, fmt.Errorf("request %d: %w", i, err))
}
