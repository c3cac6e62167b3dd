package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An acknowledgement is sent after this many messages or bytes of a stream, or at the next Tick. Larger
// values save frames but keep more in the senders' backup tables.
const (
	ackMessages = 32
	ackBytes    = 256 << 10
)

// An inbox records the messages that have arrived.
type inbox struct {
	streams  map[stream]*arrivals
	all      []*arrivals // the values of streams, in order of creation
	contexts map[int]int // per rank: number of streams from it
	due      []*arrivals // streams with unacknowledged messages
}

// arrivals is the receiving side of one stream.
type arrivals struct {
	context uint32
	source  int
	next    uint64 // number of the next message; earlier ones have been delivered
	// What has arrived since the last acknowledgement. Duplicates are included, because they show that a
	// sender lacks the acknowledgement.
	messages, bytes int
	listed          bool   // it is in due
	seal            *seal  // of the unacknowledged messages; nil: none
	last            []byte // payload of the last acknowledgement
}

func newInbox() inbox {
	return inbox{streams: make(map[stream]*arrivals), contexts: make(map[int]int)}
}

// from returns the arrivals of a stream.
func (in *inbox) from(context uint32, source int) (*arrivals, error) {
	s := stream{context, source}
	a := in.streams[s]
	if a == nil {
		if in.contexts[source] >= maxContexts {
			return nil, fmt.Errorf("more than %d contexts", maxContexts)
		}
		in.contexts[source]++
		a = &arrivals{context: context, source: source, next: 1}
		in.streams[s] = a
		in.all = append(in.all, a)
	}
	return a, nil
}

// receiveData delivers the next message of a stream. It drops a duplicate. It also drops a message that
// is too early: the channel has lost messages, and all that are missing arrive again in order when it is
// reopened. A process that lacks some of its rank's message log drops every message.
func (p *Protocol) receiveData(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("data frame without a message number")
	}
	a, err := p.inbox.from(f.Context, from.Rank)
	if err != nil {
		return err
	}
	if f.Seq > a.next || p.lacksLog() {
		return nil
	}
	if f.Seq == a.next {
		m := protection.DataMessage(f, from.Rank, p.self.Rank)
		p.sealed(a).add(&m)
		a.next++
		p.out.Deliver = append(p.out.Deliver, m)
	}
	a.messages++
	a.bytes += len(f.Payload)
	if a.messages >= ackMessages || a.bytes >= ackBytes {
		p.acknowledge(a)
	} else if !a.listed {
		a.listed = true
		p.inbox.due = append(p.inbox.due, a)
	}
	return nil
}

// acknowledge sends an acknowledgement to every live replica of the source. All of them keep the messages,
// not only the master that sent them, and all of them compare.
func (p *Protocol) acknowledge(a *arrivals) {
	if a.seal != nil {
		a.last, a.seal = a.seal.encode(), nil
	}
	f := p.control(frame.Ack, a.context, a.next-1, a.last)
	for _, q := range p.live[a.source] {
		p.emit(q, f)
	}
	a.messages, a.bytes = 0, 0
}

// acknowledgeDue sends the delayed acknowledgements.
func (p *Protocol) acknowledgeDue() {
	for _, a := range p.inbox.due {
		a.listed = false
		if a.messages > 0 {
			p.acknowledge(a)
		}
	}
	p.inbox.due = p.inbox.due[:0]
}

// acknowledgeAll repeats to q the acknowledgements of messages from its rank.
func (p *Protocol) acknowledgeAll(q view.Process) {
	for _, a := range p.inbox.all {
		switch {
		case a.source != q.Rank || a.next == 1:
		case a.seal != nil:
			p.acknowledge(a)
		default:
			p.emit(q, p.control(frame.Ack, a.context, a.next-1, a.last))
		}
	}
}
