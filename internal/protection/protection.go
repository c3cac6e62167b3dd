package protection

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A Message is what the program sends from one rank to another. Context,
// Source, Dest and Seq together name it, identically at all replicas.
type Message struct {
	Context uint32
	Source  int // rank
	Dest    int // rank
	Tag     int32
	Seq     uint64 // 1, 2, ... for each (Context, Source, Dest)
	Sync    bool   // its sender waits until it has been matched
	Payload []byte
}

// A Point names one nondeterministic call of a rank: the Index-th of its
// context in program order, the same at all replicas.
type Point struct {
	Context uint32
	Index   uint64
}

// A Determinant is the recorded outcome of a nondeterministic call. Only the
// engine knows what the bytes say.
type Determinant struct {
	Point
	Outcome []byte
}

// An Envelope is a frame and the process that it goes to.
type Envelope struct {
	To    view.Process
	Frame channel.Frame
}

// An Output is what a Protocol asks for in answer to one event. Its slices are
// the protocol's own and valid until its next call.
type Output struct {
	Send    []Envelope    // to put on the channels; the order counts per destination
	Deliver []Message     // now here; in order per (Context, Source)
	Decided []Determinant // outcomes that the program may see from now on
	// Released are payloads given to Send that the protocol does not keep any
	// more. Frames with them may not have left yet.
	Released [][]byte
	// Diverged are messages that some replica of the process's rank has sent or
	// passed on otherwise than this process has produced them.
	Diverged []Divergence
}

// A Divergence is the evidence that not all replicas of a rank have done the same,
// or that a message was changed on its way: what one process produced and what the
// receiver has got are not the same message. Who is at fault it does not say.
type Divergence struct {
	Receiver view.Process // which process has got something else
	Context  uint32
	Seq      uint64 // of the message, for each (context, source, destination)
	Tag      int32  // as produced here
	Length   uint64 // as produced here, in bytes
	Produced uint64 // digest of what was produced here
	Received uint64 // digest of what the receiver has got
}

// A Protocol protects one process of a job. Its methods are called by one
// goroutine at a time.
type Protocol interface {
	// Send takes over m and its payload, and numbers it. Dest may be the
	// process's own rank.
	Send(m Message) Output
	// Receive takes a frame that arrived from a process. The error says that
	// the sender broke the protocol; nothing has then been changed.
	Receive(from view.Process, f channel.Frame) (Output, error)
	// Decider reports whether this process itself chooses the outcomes of its
	// nondeterministic calls now. It turns from false to true at most once.
	Decider() bool
	// Decide records the outcome that the decider chose for a point; it comes
	// back in Decided, now or later, when the program may see it.
	Decide(d Determinant) Output
	// View takes a newer view; older ones are ignored.
	View(v view.View) Output
	// Reopened says that the channel to p was lost and opened anew: frames
	// that were handed out before may not have arrived.
	Reopened(p view.Process) Output
	// Tick lets some time pass, so that delayed acknowledgements go out.
	Tick() Output
	// Sent returns the number of the last message that Send numbered for a rank,
	// and Received that of the last one delivered from a rank, in a context.
	Sent(context uint32, dest int) uint64
	Received(context uint32, source int) uint64
	// Retained returns the bytes that the protocol keeps for others: 0 when
	// every message of this process is where it has to be.
	Retained() int
}

// DataFrame returns the frame that carries m.
func DataFrame(m Message) channel.Frame {
	return channel.Frame{
		Header: channel.Header{
			Kind: channel.Data, Sync: m.Sync, Context: m.Context, Rank: uint32(m.Source),
			Tag: m.Tag, Seq: m.Seq, Size: uint64(len(m.Payload)),
		},
		Payload: m.Payload,
	}
}

// DataMessage returns the message in a Data frame from rank source to dest.
func DataMessage(f channel.Frame, source, dest int) Message {
	return Message{
		Context: f.Context, Source: source, Dest: dest,
		Tag: f.Tag, Seq: f.Seq, Sync: f.Sync, Payload: f.Payload,
	}
}
