package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A dispute is about one message: a replica of this rank has produced another one
// than a receiver has got.
type dispute struct {
	stream
	replica  int // of the destination: the receiver
	seq      uint64
	key      key
	received digest // as the receiver has told the replica
}

// disputeSize is the length in bytes of the payload of a Dispute: rank 4 and replica
// 4 of the receiver, the key, and the digest 8, little-endian.
const disputeSize = 8 + keySize + 8

// maxDisputes bounds those that wait for their message to be produced.
const maxDisputes = 256

func (d *dispute) encode() []byte {
	b := make([]byte, 0, disputeSize)
	b = binary.LittleEndian.AppendUint32(b, uint32(d.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(d.replica))
	b = append(b, d.key[:]...)
	return binary.LittleEndian.AppendUint64(b, uint64(d.received))
}

// decodeDispute reads a Dispute about a message from rank self in a job with view v.
func decodeDispute(f channel.Frame, self int, v view.View) (dispute, error) {
	if len(f.Payload) != disputeSize || f.Seq == 0 {
		return dispute{}, fmt.Errorf("dispute about message %d in %d bytes", f.Seq, len(f.Payload))
	}
	b := f.Payload
	q := view.Process{Rank: int(binary.LittleEndian.Uint32(b)), Replica: int(binary.LittleEndian.Uint32(b[4:]))}
	if !v.Contains(q) || q.Rank == self {
		return dispute{}, fmt.Errorf("dispute about a message to process %v", q)
	}
	return dispute{
		stream: stream{f.Context, q.Rank}, replica: q.Replica, seq: f.Seq,
		key: key(b[8:]), received: digest(binary.LittleEndian.Uint64(b[8+keySize:])),
	}, nil
}

// receiveDispute gives this process's vote, now or as soon as it has produced the
// message.
func (p *Protocol) receiveDispute(f channel.Frame) error {
	d, err := decodeDispute(f, p.self.Rank, p.v)
	if err != nil {
		return err
	}
	b := p.outbox.streams[d.stream]
	switch {
	case b == nil || d.seq > b.seq:
		if len(p.disputes) < maxDisputes {
			p.disputes = append(p.disputes, d)
		}
	case b.kept(d.seq) != nil:
		m := b.kept(d.seq)
		h := newHash(d.key)
		p.vote(d, m, h.digest(m))
	case b.acked[d.replica] >= d.seq && !b.blind[d.replica] && !b.differs[d.replica]:
		// It was compared, with what the receiver has told this process, and is gone.
		p.vote(d, &protection.Message{Seq: d.seq}, d.received)
	}
	return nil
}

// voteLate gives this process's votes on m, which it has just produced.
func (p *Protocol) voteLate(b *backlog, m *protection.Message) {
	waiting := p.disputes[:0]
	for _, d := range p.disputes {
		if d.stream == (stream{b.context, b.dest}) && d.seq == m.Seq {
			h := newHash(d.key)
			p.vote(d, m, h.digest(m))
		} else {
			waiting = append(waiting, d)
		}
	}
	p.disputes = waiting
}

// vote says what this process has produced as the message of d.
func (p *Protocol) vote(d dispute, m *protection.Message, produced digest) {
	p.out.Diverged = append(p.out.Diverged, protection.Divergence{
		Receiver: view.Process{Rank: d.rank, Replica: d.replica}, Context: d.context, Seq: d.seq,
		Tag: m.Tag, Length: uint64(len(m.Payload)), Produced: uint64(produced), Received: uint64(d.received),
	})
}
