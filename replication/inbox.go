package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An acknowledgement is sent after this many messages or bytes of a stream, or at the next Tick. Larger values
// save frames but make the senders' backup tables larger.
const (
	ackMessages = 32
	ackBytes    = 256 << 10
)

// An inbox records the messages that have arrived.
type inbox struct {
	*core
	secret   Secret
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
	// Messages since the last acknowledgement. Duplicates are included, because a sender of duplicates lacks the
	// acknowledgement.
	messages, bytes int
	listed          bool   // the stream is in due
	seal            *seal  // digests of the unacknowledged messages; nil if there are none
	last            []byte // payload of the last acknowledgement
}

func newInbox(c *core, secret Secret) *inbox {
	return &inbox{core: c, secret: secret, streams: make(map[stream]*arrivals), contexts: make(map[int]int)}
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

// receiveData delivers the next message of a stream. It drops a duplicate. It also drops a message whose
// predecessors are missing: the channel has lost messages, and all missing messages arrive again in order when the
// channel is reopened. A process that lacks a part of its rank's message log drops every message.
func (in *inbox) receiveData(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("data frame without a message number")
	}
	a, err := in.from(f.Context, from.Rank)
	if err != nil {
		return err
	}
	if f.Seq > a.next || in.lacksLog {
		return nil
	}
	if f.Seq == a.next {
		m := protection.DataMessage(f, from.Rank, in.self.Rank)
		in.sealed(a).add(&m)
		a.next++
		in.out.Deliver = append(in.out.Deliver, m)
	}
	a.messages++
	a.bytes += len(f.Payload)
	if a.messages >= ackMessages || a.bytes >= ackBytes {
		in.acknowledge(a)
	} else if !a.listed {
		a.listed = true
		in.due = append(in.due, a)
	}
	return nil
}

// replay delivers a message of the log. The message has no digest: it is acknowledged by its number alone, and is
// not compared.
func (in *inbox) replay(m protection.Message) error {
	if m.Source >= in.v.N || m.Source == in.self.Rank {
		return fmt.Errorf("message log contains a message from invalid rank %d", m.Source)
	}
	a, err := in.from(m.Context, m.Source)
	if err != nil {
		return err
	}
	switch {
	case m.Seq == 0 || m.Seq > a.next:
		return fmt.Errorf("message log contains message %d from rank %d in context %d after message %d", m.Seq, m.Source, m.Context, a.next-1)
	case m.Seq == a.next: // otherwise an earlier donor has sent the message
		a.next++
		in.out.Deliver = append(in.out.Deliver, m)
	}
	return nil
}

// sealed returns the seal for the next message of a.
func (in *inbox) sealed(a *arrivals) *seal {
	if a.seal == nil {
		k := keyFor(in.secret, stream{a.context, a.source}, a.next)
		a.seal = &seal{key: k, hash: newHash(k)}
	}
	return a.seal
}

// acknowledge sends every live replica of the source the number and digests of the messages that have arrived. Not
// only the master but every replica keeps the messages and compares the digests.
func (in *inbox) acknowledge(a *arrivals) {
	if a.seal != nil {
		a.last, a.seal = a.seal.encode(), nil
	}
	f := in.control(frame.Ack, a.context, a.next-1, a.last)
	for _, q := range in.live[a.source] {
		in.emit(q, f)
	}
	a.messages, a.bytes = 0, 0
}

// acknowledgeDue sends the delayed acknowledgements.
func (in *inbox) acknowledgeDue() {
	for _, a := range in.due {
		a.listed = false
		if a.messages > 0 {
			in.acknowledge(a)
		}
	}
	in.due = in.due[:0]
}

// acknowledgeAll repeats to q the acknowledgements of messages from its rank.
func (in *inbox) acknowledgeAll(q view.Process) {
	for _, a := range in.all {
		switch {
		case a.source != q.Rank || a.next == 1:
		case a.seal != nil:
			in.acknowledge(a)
		default:
			in.emit(q, in.control(frame.Ack, a.context, a.next-1, a.last))
		}
	}
}
