package faultdetect

import (
	"fmt"
	"time"
)

// Kind says what a message is for.
type Kind byte

// The kinds of messages. Each is a sign of life of its sender.
const (
	Table  Kind = 1 + iota // the sender's heartbeats, once per period to one member
	Ping                   // are you there?
	Pong                   // the answer to Ping
	Ask                    // please ask the member About for me
	Vouch                  // the member About has answered me
	Accuse                 // the member About has failed: ask it yourself, and tell others
)

// A Message goes from one member of a group to another.
type Message struct {
	From, To  int
	Kind      Kind
	Heartbeat uint64   // the sender's own
	Table     []uint64 // what the sender knows of each member, itself included; of kind Table only
	About     int      // of Ask, Vouch and Accuse: another member
	Tree      Tree     // of Accuse: along which tree it is spread
	Reach     int      // of Accuse: to how many members after the receiver, in the tree's order, it is to bring it
}

// A Tree is one of the two along which an accusation is spread: that of double
// binary round robin's first half, or of its second.
type Tree byte

// The trees.
const (
	Forward  Tree = iota // to +1, +2, +4, …
	Backward             // to -1, -2, -4, …
)

// State is what a member believes of another.
type State byte

// The states of a member. Failed is final.
const (
	Live State = iota
	Suspect
	Failed
)

// String names the state as in the literature.
func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Suspect:
		return "suspect"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("state %d", byte(s))
}

// A Verdict says that a member has come into a new state.
type Verdict struct {
	Member  int
	State   State
	Silence int // periods since the last sign of life, as far as this member ran in them
	// RoundTrip is the recent round-trip time of its answers; 0: unknown.
	RoundTrip time.Duration
}

// Output is what one event asks the caller to do.
type Output struct {
	Send     []Message
	Verdicts []Verdict
}
