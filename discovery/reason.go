package discovery

import (
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Reason is the reason why a peer is not a candidate.
type Reason int

// The reasons, in the order in which a message should list them.
const (
	Full          Reason = iota // no free slots, or its owner's limit on jobs reached
	TooSmall                    // less memory per slot than needed
	OtherPlatform               // operating system or processor other than needed
	NotChosen                   // excluded by the submitter's filter
	OtherVersion                // speaks another protocol version
	OtherNetwork                // belongs to another network
	OffersNothing               // a submit-only peer without the offer protocol, or a peer without slots
	Silent                      // connected, but no answer in time
	Unreachable                 // no connection
	Expired                     // its offer has expired, or a clock is wrong
	BadOffer                    // invalid signature, encoding or values
)

var reasonNames = [...]string{
	Full:          "no free slots",
	TooSmall:      "too small",
	OtherPlatform: "other platform",
	NotChosen:     "not chosen",
	OtherVersion:  "other version",
	OtherNetwork:  "other network",
	OffersNothing: "offers nothing",
	Silent:        "silent",
	Unreachable:   "unreachable",
	Expired:       "offer expired",
	BadOffer:      "bad offer",
}

// String returns the reason as used in messages.
func (r Reason) String() string {
	if r >= 0 && int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", int(r))
}

// A Refusal is the error for a peer that is not a candidate.
type Refusal struct {
	Reason Reason
	Err    error // details for a log or a verbose message; may be nil
}

// Error returns the reason and the details.
func (r *Refusal) Error() string {
	if r.Err == nil {
		return r.Reason.String()
	}
	return r.Reason.String() + ": " + r.Err.Error()
}

// Unwrap returns the details.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(why Reason, format string, args ...any) *Refusal {
	return &Refusal{why, fmt.Errorf(format, args...)}
}

// Considered is a peer that was considered and rejected.
type Considered struct {
	Peer   p2ppeer.ID
	Reason Reason
	Err    error // details; may be nil
}
