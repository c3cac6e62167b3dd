package protection

import (
	"fmt"

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
	// Retained returns the bytes that the protocol keeps for others: 0 when
	// every message of this process is where it has to be.
	Retained() int
}

// None is the Protocol of a job without replicas: messages go straight
// through, the process decides for itself, and nothing is kept.
type None struct {
	self view.Process
	v    view.View
	sent map[route]uint64
	out  Output
}

type route struct {
	context uint32
	dest    int
}

// NewNone returns the protocol of process self in a job with one replica.
func NewNone(self view.Process, v view.View) *None {
	return &None{self: self, v: v, sent: make(map[route]uint64)}
}

func (p *None) reset() {
	p.out = Output{Send: p.out.Send[:0], Deliver: p.out.Deliver[:0], Decided: p.out.Decided[:0]}
}

// Send implements Protocol.
func (p *None) Send(m Message) Output {
	p.reset()
	r := route{m.Context, m.Dest}
	p.sent[r]++
	m.Source, m.Seq = p.self.Rank, p.sent[r]
	if m.Dest == p.self.Rank {
		p.out.Deliver = append(p.out.Deliver, m)
	} else {
		p.out.Send = append(p.out.Send, Envelope{To: view.Process{Rank: m.Dest}, Frame: DataFrame(m)})
	}
	return p.out
}

// Receive implements Protocol.
func (p *None) Receive(from view.Process, f channel.Frame) (Output, error) {
	p.reset()
	if !p.v.Contains(from) || from == p.self {
		return p.out, fmt.Errorf("frame from %v, which is no other process of the job", from)
	}
	if f.Kind != channel.Data {
		return p.out, fmt.Errorf("frame of kind %d from %v in a job without replicas", f.Kind, from)
	}
	p.out.Deliver = append(p.out.Deliver, DataMessage(f, from.Rank, p.self.Rank))
	return p.out, nil
}

// Decider implements Protocol.
func (p *None) Decider() bool { return true }

// Decide implements Protocol.
func (p *None) Decide(d Determinant) Output {
	p.reset()
	p.out.Decided = append(p.out.Decided, d)
	return p.out
}

// View implements Protocol.
func (p *None) View(v view.View) Output {
	p.reset()
	if v.Epoch > p.v.Epoch {
		p.v = v
	}
	return p.out
}

// Reopened implements Protocol.
func (p *None) Reopened(view.Process) Output {
	p.reset()
	return p.out
}

// Tick implements Protocol.
func (p *None) Tick() Output {
	p.reset()
	return p.out
}

// Retained implements Protocol.
func (p *None) Retained() int { return 0 }

// DataFrame returns the frame that carries m.
func DataFrame(m Message) channel.Frame {
	return channel.Frame{
		Header: channel.Header{
			Kind: channel.Data, Context: m.Context, Rank: uint32(m.Source),
			Tag: m.Tag, Seq: m.Seq, Size: uint64(len(m.Payload)),
		},
		Payload: m.Payload,
	}
}

// DataMessage returns the message in a Data frame from rank source to dest.
func DataMessage(f channel.Frame, source, dest int) Message {
	return Message{
		Context: f.Context, Source: source, Dest: dest,
		Tag: f.Tag, Seq: f.Seq, Payload: f.Payload,
	}
}
