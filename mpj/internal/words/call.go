package words

// A CallKind says what a call waits for.
type CallKind uint8

// The kinds.
const (
	Sending   CallKind = iota + 1 // for a receive
	Receiving                     // for a message
	Probing                       // likewise
	Operating                     // for Finish
)

// A Call is what a goroutine of the program waits for.
type Call struct {
	Number  uint64 // of the sleep: no two have the same, but calls of one Waitany do
	Kind    CallKind
	Context uint32
	Peer    int // world rank, or AnySource
	Tag     int32
	Size    int // bytes, of a send
	// Here are messages of the context that a receive or probe does not take.
	Here []Status
}

// A Waiting is what an engine waits for at one moment.
type Waiting struct {
	Calls []Call
	// Known says that Calls has all goroutines that are in a call, and that
	// nothing here is about to end one.
	Known bool
	// Sent and Received count the frames to and from each other rank, except
	// those of Tell and, once heard, Hear. An acknowledgement does not count.
	Sent, Received map[int]uint64
}
