package protection

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Message is a message of the program from one rank to another. Context, Source, Dest and Seq together identify
// it, and are the same at all replicas.
type Message struct {
	Context uint32
	Source  int // rank
	Dest    int // rank
	Tag     int32
	Seq     uint64 // 1, 2, ... for each (Context, Source, Dest)
	Sync    bool   // the sender waits until the message has been matched
	Payload []byte
}

// A Point identifies one nondeterministic call of a rank: the Index-th call in its context in program order. It is
// the same at all replicas.
type Point struct {
	Context uint32
	Index   uint64
}

// A Determinant is the recorded outcome of a nondeterministic call. Only the engine interprets the bytes.
type Determinant struct {
	Point
	Outcome []byte
}

// An Envelope is a frame and its destination.
type Envelope struct {
	To    view.Process
	Frame frame.Frame
}

// An Output contains the actions that a Protocol requests in answer to one event. Its slices belong to the
// protocol and are valid until its next call.
type Output struct {
	Send    []Envelope    // to send on the channels; ordered per destination
	Deliver []Message     // delivered to the engine; in order per (Context, Source)
	Decided []Determinant // outcomes that the program may see from now on
	// Released contains payloads passed to Send that the protocol no longer keeps. Frames with them may
	// still be unsent.
	Released [][]byte
	// Diverged contains this process's statements about messages that differ between the replicas of its rank, or
	// that were changed in transit.
	Diverged []Divergence
	// LogRequests contains requests for pieces of this process's message log, from new replicas of the rank.
	LogRequests []LogRequest
	// State is the next part of the program's state, from the checkpoint from which this new process resumes. It
	// follows the bytes in the State of the previous Output.
	State []byte
	// Lost, if not empty, is the reason why this new process can never join its rank.
	Lost string
	// UpToDate, if not zero, states that this process, which is set aside, may count again.
	UpToDate UpToDate
}

// UpToDate is a master's statement that a process of its rank, which is set aside in the view, lacks
// nothing that the rank has seen.
type UpToDate struct {
	Since uint64 `json:"since"` // epoch in which the process was set aside
	Term  uint64 `json:"term"`  // epoch in which the master became master
}

// A LogRequest is the request of the process To for the rest of a message log, of which it already has the first
// Position bytes.
type LogRequest struct {
	To       view.Process
	Position uint64
}

// MessageLogFrame returns the frame with a piece of the message log of rank: the bytes after position. last
// marks the final piece. An empty piece that is not the last states that the log is not kept.
func MessageLogFrame(rank int, position uint64, piece []byte, last bool) frame.Frame {
	return frame.Frame{
		Header: frame.Header{
			Kind: frame.MessageLog, Sync: last, Rank: uint32(rank), Seq: position, Size: uint64(len(piece)),
		},
		Payload: piece,
	}
}

// A Divergence compares a message as one process produced it with the message that a receiver received. If
// they differ, the replicas of the process's rank have diverged, or the message was changed; a Divergence
// does not tell which process is at fault. If they are equal, a replica confirms the receiver's version of a message that
// another replica disputes.
type Divergence struct {
	Receiver view.Process `json:"receiver"`
	Context  uint32       `json:"context"`
	Seq      uint64       `json:"seq"`      // number of the message in its (context, source, destination)
	Tag      int32        `json:"tag"`      // as produced; 0 if no longer known
	Length   uint64       `json:"length"`   // length in bytes; 0 if no longer known
	Produced uint64       `json:"produced"` // digest
	Received uint64       `json:"received"` // digest
}

// Differs reports whether the message that the process produced differs from the one that was received.
func (d Divergence) Differs() bool { return d.Produced != d.Received }

// Valid returns an error unless process p of a job with view v can report d, which must be about a
// message to another rank.
func (d Divergence) Valid(p view.Process, v view.View) error {
	if v.State(p) == view.Vacant || v.State(d.Receiver) == view.Vacant || d.Receiver.Rank == p.Rank || d.Seq == 0 || d.Length > frame.MaxPayload {
		return fmt.Errorf("malformed divergence reported by %v: message %d to %v, %d bytes", p, d.Seq, d.Receiver, d.Length)
	}
	return nil
}

// String describes d for the log.
func (d Divergence) String() string {
	return fmt.Sprintf("message %d to rank %d on communicator %d (slot %d): tag %d, %d bytes, digest %016x; %v has received digest %016x",
		d.Seq, d.Receiver.Rank, d.Context>>8, d.Context&0xff, d.Tag, d.Length, d.Produced, d.Receiver, d.Received)
}

// A Protocol protects one process of a job. Calls of its methods must not overlap.
type Protocol interface {
	// Send takes over m and its payload, and numbers it. Dest may be the process's own rank.
	Send(m Message) Output
	// Receive processes a frame from a process. An error means that the sender violated the protocol; its state is
	// then unchanged.
	Receive(from view.Process, f frame.Frame) (Output, error)
	// Decider reports whether this process now chooses the outcomes of its nondeterministic calls. Any
	// call of another method may change this.
	Decider() bool
	// Decide records the outcome that the decider chose for a point. When the program may see the outcome, at once
	// or later, an Output returns it in Decided.
	Decide(d Determinant) Output
	// View sets a newer view; older ones are ignored.
	View(v view.View) Output
	// Reopened records that the channel to p was lost and reopened, so earlier frames may not have
	// arrived.
	Reopened(p view.Process) Output
	// Tick is called periodically, so that delayed acknowledgements are sent.
	Tick() Output
	// Sent returns the number of the last message that this process has sent to a rank in a context. Received
	// returns the number of the last message that was delivered from a rank in a context.
	Sent(context uint32, dest int) uint64
	Received(context uint32, source int) uint64
	// Waiting reports whether this process, as the decider, has an outcome that the program may not see
	// before other replicas have it.
	Waiting() bool
	// Joining reports whether this process, which is new in its rank, has not caught up with the rank
	// yet. It changes from true to false at most once.
	Joining() bool
	// LogComplete reports whether this process has the complete state of its rank, because it is not new or has
	// received the complete message log of its rank. It changes from false to true at most once.
	LogComplete() bool
	// Snapshot returns the state of this process's messages that another process needs to resume from here:
	// Sent, Received and Kept. The payloads still belong to the protocol.
	Snapshot() Snapshot
	// Checkpointed reports whether this process, which is new in its rank, has to resume from a checkpoint. Resume
	// resumes from the checkpoint, once the checkpoint has Arrived and the program is at its own first checkpoint.
	// Resume returns the snapshot, and the Output of the records after the checkpoint.
	Checkpointed() Checkpointed
	Resume() (Snapshot, Output)
	// Sums returns a summary of everything that this process has sent, ordered by Context and Dest. ok is false if
	// the process has resumed from a checkpoint, because the sum of the earlier messages is then unknown.
	Sums() (sums []Sum, ok bool)
	// Retained returns the number of bytes that the protocol keeps for other processes. It is 0 when every message
	// of this process has arrived wherever it is needed.
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

// DataMessage returns the message in a Data frame from rank source to rank dest.
func DataMessage(f frame.Frame, source, dest int) Message {
	return Message{
		Context: f.Context, Source: source, Dest: dest,
		Tag: f.Tag, Seq: f.Seq, Sync: f.Sync, Payload: f.Payload,
	}
}
