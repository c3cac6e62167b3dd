package faultdetect

import "time"

// Kind is the purpose of a message.
type Kind byte

// The kinds of messages. Each is a sign of life of its sender.
const (
	Table   Kind = 1 + iota // the sender's heartbeats, sent to one member per period
	Ping                    // asks for a Pong
	Pong                    // the answer to Ping
	Ask                     // asks the receiver to ping the member About
	Confirm                 // reports that the member About has answered
	Accuse                  // reports that the member About has failed; the receiver asks it and passes the message on
)

// A Message is sent from one member of a group to another.
type Message struct {
	From, To  int
	Kind      Kind
	Heartbeat uint64   // heartbeat of the sender
	Table     []uint64 // the sender's table, including itself; for kind Table only
	About     int      // for Ask, Confirm and Accuse: another member
	Tree      Tree     // for Accuse: the tree along which it spreads
	Reach     int      // for Accuse: number of members after the receiver, in the tree's order, that it must cover
}

// A Tree is one of the two trees along which an accusation spreads: that of the first or of the second
// half of double binary round robin.
type Tree byte

// The trees.
const (
	Forward  Tree = iota // to +1, +2, +4, …
	Backward             // to -1, -2, -4, …
)

// State is a member's opinion of another.
type State byte

// The states of a member. Failed is final.
const (
	Live State = iota
	Suspect
	Failed
)

var stateNames = [...]string{Live: "live", Suspect: "suspect", Failed: "failed"}

// String returns the state as in the literature.
func (s State) String() string { return name(stateNames[:], "state", byte(s)) }

// A Verdict reports that a member has entered a new state.
type Verdict struct {
	Member  int
	State   State
	Silence int // periods since the last sign of life, not counting those in which this member did not run
	// RoundTrip is the recent round-trip time of the member's answers, or 0 if unknown.
	RoundTrip time.Duration
}

// Output holds the actions that the caller carries out after an event.
type Output struct {
	Send     []Message
	Verdicts []Verdict
}
