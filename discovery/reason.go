package discovery

import (
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Reason says why a peer is no candidate.
type Reason int

// The reasons, in the order in which a message should list them.
const (
	Full          Reason = iota // no free slots, or as many jobs as its owner allows
	TooSmall                    // less memory than is needed
	OtherPlatform               // another operating system or processor than is needed
	NotChosen                   // the submitter wants others
	OtherVersion                // speaks another protocol version
	OtherNetwork                // belongs to another network
	OffersNothing               // a submit-only peer, which does not speak the offer protocol, or one without slots
	Silent                      // connected, but gave no answer in time
	Unreachable                 // no connection
	Expired                     // its offer has expired, or a clock is wrong
	BadOffer                    // signature, form or numbers are wrong
)

// String names the reason in the words of messages.
func (r Reason) String() string {
	switch r {
	case Full:
		return "no free slots"
	case TooSmall:
		return "too small"
	case OtherPlatform:
		return "other platform"
	case NotChosen:
		return "not chosen"
	case OtherVersion:
		return "other version"
	case OtherNetwork:
		return "other network"
	case OffersNothing:
		return "offers nothing"
	case Silent:
		return "silent"
	case Unreachable:
		return "unreachable"
	case Expired:
		return "offer expired"
	case BadOffer:
		return "bad offer"
	}
	return fmt.Sprintf("reason %d", int(r))
}

// A Refusal is the error of a peer that is no candidate.
type Refusal struct {
	Reason Reason
	Err    error // the particulars, for a log or a verbose message; may be nil
}

// Error gives the reason and the particulars.
func (r *Refusal) Error() string {
	if r.Err == nil {
		return r.Reason.String()
	}
	return r.Reason.String() + ": " + r.Err.Error()
}

// Unwrap returns the particulars.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(why Reason, format string, args ...any) *Refusal {
	return &Refusal{why, fmt.Errorf(format, args...)}
}

// Considered is a peer that was asked, or would have been, and was not taken.
type Considered struct {
	Peer   p2ppeer.ID
	Reason Reason
	Err    error // the particulars; may be nil
}
