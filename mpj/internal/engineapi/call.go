package engineapi

// A CallKind is the kind of event that a call waits for.
type CallKind uint8

// The kinds.
const (
	Sending   CallKind = iota + 1 // waits for a receive
	Receiving                     // waits for a message
	Probing                       // waits for a message
	Operating                     // waits for Finish
)

// A Call describes the call in which a goroutine of the program waits.
type Call struct {
	Number  uint64 // number of the wait; only the calls of one Waitany or Waitsome share it
	Kind    CallKind
	Context uint32
	Peer    int // world rank, or AnySource
	Tag     int32
	Size    int // bytes to send
	// Unexpected lists messages in the context that do not match the receive or probe.
	Unexpected []Status
}

// A Waiting describes what an engine waits for at one moment.
type Waiting struct {
	Calls []Call
	// Known reports that Calls contains the calls of all goroutines that are in a call, and that no
	// local event is about to end a call.
	Known bool
	// Sent and Received count the frames exchanged with each other rank. They exclude frames of
	// SendUncounted, frames received with RecvUncounted, and acknowledgements.
	Sent, Received map[int]uint64
}
