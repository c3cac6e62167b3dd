package reservation

import (
	"errors"
	"fmt"
	"strconv"
)

// A Reason says why a peer's slots were not to be had. It is an error, so that
// a caller can ask errors.Is(err, Busy), and comparable, so that refusals can
// be counted.
type Reason byte

// The reasons. The last three are the submitter's own finding, not an answer.
const (
	Busy        Reason = iota + 1 // no slot is free
	MaxJobs                       // the owner's limit of jobs is reached
	Denied                        // the owner does not admit this submitter
	Draining                      // the owner is taking the machine back
	Version                       // the peers speak different protocols
	UnknownKey                    // not held (any more), already redeemed, or somebody else's
	Malformed                     // a request, or an answer, that makes no sense
	WasmOnly                      // the owner admits no native program of this submitter
	Unconfined                    // native programs would run there without walls, which the owner does not allow
	Paused                        // the owner needs the machine now
	NoDisk                        // too little disk is free for any job
	Unreachable                   // no connection
	Silent                        // connected, but no answer in time
	SameMachine                   // on the machine of another peer, which runs all that may run there
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

// String names the reason in one or two words.
func (r Reason) String() string {
	if r > 0 && int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Error is String, marked as the end of a request.
func (r Reason) Error() string { return "refused: " + r.String() }

// A Queued is a refusal for now: the job waits in the peer's queue.
type Queued struct {
	Reason Reason // Busy or MaxJobs
	Place  Place
}

// Error gives the reason and the place.
func (q *Queued) Error() string {
	return fmt.Sprintf("%v; place %d of %d in the queue", q.Reason.Error(), q.Place.Place, q.Place.Of)
}

// Unwrap returns the Reason.
func (q *Queued) Unwrap() error { return q.Reason }

// reasonOf finds the reason in what a Requester returned. An error that names
// none counts as silence: the request may have been carried out.
func reasonOf(err error) Reason {
	if r, ok := errors.AsType[Reason](err); ok {
		return r
	}
	return Silent
}
