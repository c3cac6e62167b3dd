package reservation

import (
	"errors"
	"fmt"
	"strconv"
)

// A Reason is the reason why a peer gave no slots. It is an error, so that callers can use errors.Is(err,
// Busy), and comparable, so that refusals can be counted.
type Reason byte

// The reasons. The last three are the submitter's own findings, not answers of a peer.
const (
	Busy        Reason = iota + 1 // no slot is free
	MaxJobs                       // the owner's limit on jobs is reached
	Denied                        // the owner does not admit this submitter
	Draining                      // the owner is reclaiming the machine
	Version                       // the peers speak different protocols
	UnknownKey                    // the key holds no slots, is redeemed, or was issued to another submitter
	Malformed                     // invalid request or answer
	WasmOnly                      // the owner accepts no native programs from this submitter
	Unconfined                    // native programs would run without a sandbox, which the owner does not allow
	Paused                        // the owner needs the machine now
	NoDisk                        // not enough free disk space for any job
	Unreachable                   // no connection
	Silent                        // connected, but no answer in time
	SameMachine                   // other peers of its machine already run as many processes as may run there
)

var reasonNames = [...]string{
	Busy:        "busy",
	MaxJobs:     "max-jobs",
	Denied:      "denied",
	Draining:    "draining",
	Version:     "version",
	UnknownKey:  "unknown key",
	Malformed:   "malformed",
	WasmOnly:    "wasm only",
	Unconfined:  "unconfined",
	Paused:      "paused",
	NoDisk:      "no disk",
	Unreachable: "unreachable",
	Silent:      "silent",
	SameMachine: "same machine",
}

// String returns the reason in one or two words.
func (r Reason) String() string {
	if r > 0 && int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Error returns "refused: " and the reason.
func (r Reason) Error() string { return "refused: " + r.String() }

// queued is a temporary refusal: the job waits in the peer's queue.
type queued struct {
	Reason Reason // Busy or MaxJobs
	Place  Place
}

// Error returns the reason and the place.
func (q *queued) Error() string {
	return fmt.Sprintf("%v; place %d of %d in the queue", q.Reason.Error(), q.Place.Place, q.Place.Of)
}

// Unwrap returns the Reason.
func (q *queued) Unwrap() error { return q.Reason }

// reasonOf returns the reason in an error of a Requester. An error without one counts as Silent, since
// the request may have been carried out.
func reasonOf(err error) Reason {
	if r, ok := errors.AsType[Reason](err); ok {
		return r
	}
	return Silent
}
