package protection

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
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
	Frame frame.Frame
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
	// Diverged is what this process has to say about messages that not all replicas
	// of its rank have produced alike, or that were changed on their way.
	Diverged []Divergence
	// Recalls are pieces of this process's past that new replicas of its rank ask for.
	Recalls []Recall
	// State is what came of the program's state in a checkpoint that this process, which
	// is new, is to go on from: the bytes after those of the last Output.
	State []byte
	// Lost says why this process, which was to join its rank, never can; empty: it may.
	Lost string
	// UpToDate, if it is not zero, says that this process, which is set aside, may count again.
	UpToDate UpToDate
}

// UpToDate is the statement of a master that a process of its rank, which is set aside in the view, lacks
// nothing that the rank has seen.
type UpToDate struct {
	Since uint64 `json:"since"` // the epoch in which the process was set aside
	Term  uint64 `json:"term"`  // the epoch in which the master became master
}

// A Recall asks for the past of a process from a position on: so many bytes of its
// records To has already.
type Recall struct {
	To       view.Process
	Position uint64
}

// PastFrame returns the frame that brings a piece of the past of rank: what comes
// after position. last says that there is no more. A piece of nothing that is not
// the last says that the past is not kept.
func PastFrame(rank int, position uint64, piece []byte, last bool) frame.Frame {
	return frame.Frame{
		Header: frame.Header{
			Kind: frame.Past, Sync: last, Rank: uint32(rank), Seq: position, Size: uint64(len(piece)),
		},
		Payload: piece,
	}
}

// A Divergence says what one process has produced and what a receiver has got in
// its place. Where the two differ, not all replicas of the process's rank have done
// the same, or somebody has changed the message; who, it does not say. Where they
// are equal, it is the word of a replica that agrees with the receiver, about a
// message that another replica disputes.
type Divergence struct {
	Receiver view.Process `json:"receiver"`
	Context  uint32       `json:"context"`
	Seq      uint64       `json:"seq"`      // of the message, for each (context, source, destination)
	Tag      int32        `json:"tag"`      // as produced; 0 if that is not known any more
	Length   uint64       `json:"length"`   // in bytes; likewise
	Produced uint64       `json:"produced"` // digest
	Received uint64       `json:"received"` // digest
}

// Differs reports whether the process has produced something else.
func (d Divergence) Differs() bool { return d.Produced != d.Received }

// Valid reports whether process p of a job with view v can say d: it is about a
// message to another rank.
func (d Divergence) Valid(p view.Process, v view.View) error {
	if v.State(p) == view.Vacant || v.State(d.Receiver) == view.Vacant || d.Receiver.Rank == p.Rank || d.Seq == 0 || d.Length > frame.MaxPayload {
		return fmt.Errorf("divergence of %v about message %d to %v, %d bytes", p, d.Seq, d.Receiver, d.Length)
	}
	return nil
}

// String says which message d is about, in words.
func (d Divergence) String() string {
	return fmt.Sprintf("message %d to rank %d on communicator %d (slot %d): tag %d, %d bytes, digest %016x; %v has got digest %016x",
		d.Seq, d.Receiver.Rank, d.Context>>8, d.Context&0xff, d.Tag, d.Length, d.Produced, d.Receiver, d.Received)
}

// A Protocol protects one process of a job. Its methods are called by one
// goroutine at a time.
type Protocol interface {
	// Send takes over m and its payload, and numbers it. Dest may be the
	// process's own rank.
	Send(m Message) Output
	// Receive takes a frame that arrived from a process. The error says that
	// the sender broke the protocol; nothing has then been changed.
	Receive(from view.Process, f frame.Frame) (Output, error)
	// Decider reports whether this process itself chooses the outcomes of its
	// nondeterministic calls now. It may change in any call of another method.
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
	// Waiting reports whether this process, as the decider, has an outcome that the program may not see before
	// other replicas have it.
	Waiting() bool
	// Joining reports whether this process, which is new in its rank, has not caught
	// up yet with what the rank had done. It turns from true to false at most once.
	Joining() bool
	// Whole reports whether this process knows all that its rank knows: it is not new,
	// or has been told its rank's past to the end. It turns from false to true at most once.
	Whole() bool
	// Snapshot returns what a process has to know of this one's messages to go on from
	// here: Sent, Received and Kept. Their payloads stay the protocol's.
	Snapshot() Snapshot
	// Checkpointed reports whether this process, which is new in its rank, is to go on
	// from a checkpoint, and Resume lets it do so once that has Arrived: the program
	// has come to its first one. It returns what was in it, and the Output what came behind it.
	Checkpointed() Checkpointed
	Resume() (Snapshot, Output)
	// Sums returns what this process has sent in all, in order of Context and Dest. Not
	// ok: it has gone on from a checkpoint, and does not know what came before.
	Sums() (sums []Sum, ok bool)
	// Retained returns the bytes that the protocol keeps for others: 0 when
	// every message of this process is where it has to be.
	Retained() int
}

// DataFrame returns the frame that carries m.
func DataFrame(m Message) frame.Frame {
	return frame.Frame{
		Header: frame.Header{
			Kind: frame.Data, Sync: m.Sync, Context: m.Context, Rank: uint32(m.Source),
			Tag: m.Tag, Seq: m.Seq, Size: uint64(len(m.Payload)),
		},
		Payload: m.Payload,
	}
}

// DataMessage returns the message in a Data frame from rank source to dest.
func DataMessage(f frame.Frame, source, dest int) Message {
	return Message{
		Context: f.Context, Source: source, Dest: dest,
		Tag: f.Tag, Seq: f.Seq, Sync: f.Sync, Payload: f.Payload,
	}
}
