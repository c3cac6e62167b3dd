package replication

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A dispute concerns one message: a replica of this rank has produced a message that differs from the one that a
// receiver has received.
type dispute struct {
	stream
	replica  int // receiver: replica of the destination
	seq      uint64
	key      key
	received digest // the receiver's digest, according to the disputing replica
}

// disputeSize is the length in bytes of the payload of a Dispute: rank 4 and replica 4 of the receiver,
// the key, and the digest 8, little-endian.
const disputeSize = 8 + keySize + 8

// maxDisputes bounds the disputes that are processed from each other replica. Without this bound, a lying replica
// could make this process vote so often that package engine drops its later reports.
const maxDisputes = 32

func (d *dispute) encode() []byte {
	b := make([]byte, 0, disputeSize)
	b = binary.LittleEndian.AppendUint32(b, uint32(d.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(d.replica))
	b = append(b, d.key[:]...)
	return binary.LittleEndian.AppendUint64(b, uint64(d.received))
}

// decodeDispute decodes a Dispute about a message from rank self of n.
func decodeDispute(f frame.Frame, self, n int) (dispute, error) {
	if len(f.Payload) != disputeSize || f.Seq == 0 {
		return dispute{}, fmt.Errorf("malformed dispute about message %d, %d bytes", f.Seq, len(f.Payload))
	}
	b := f.Payload
	rank, replica := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if rank >= n || rank == self {
		return dispute{}, fmt.Errorf("dispute about a message to invalid rank %d", rank)
	}
	return dispute{
		stream: stream{f.Context, rank}, replica: replica, seq: f.Seq,
		key: key(b[8:]), received: digest(binary.LittleEndian.Uint64(b[8+keySize:])),
	}, nil
}

// receiveDispute votes on a dispute, at once or when this process can.
func (a *audit) receiveDispute(from view.Process, f frame.Frame) error {
	d, err := decodeDispute(f, a.self.Rank, a.v.N)
	if err != nil {
		return err
	}
	if a.disputed[from.Replica]++; a.disputed[from.Replica] <= maxDisputes && !a.answer(d, nil) {
		a.disputes = append(a.disputes, d)
	}
	return nil
}

// answerDisputes votes on the disputes that can be answered now. m, if not nil, has just been produced and is not
// kept yet.
func (a *audit) answerDisputes(of *backlog, m *protection.Message) {
	a.disputes = slices.DeleteFunc(a.disputes, func(d dispute) bool {
		if m != nil && d.stream == (stream{of.context, of.dest}) && d.seq == m.Seq {
			return a.answer(d, m)
		}
		return a.answer(d, nil)
	})
}

// answer votes on a dispute if possible, and reports whether the dispute is closed for this process. It relies on
// the receiver's own acknowledgement, and not on the disputing replica, because either may lie. It uses the
// statement of the replica only if there is no other source: the receiver is no longer live, its statement was
// lost, or the message was dropped.
func (a *audit) answer(d dispute, m *protection.Message) bool {
	receiver, b := view.Process{Rank: d.rank, Replica: d.replica}, a.outbox.streams[d.stream]
	if b == nil || d.seq > b.seq || !a.v.Contains(receiver) || a.v.State(receiver) == view.Vacant {
		return false // this process has not produced the message yet, or the receiver has not joined yet
	}
	if m == nil {
		m = b.kept(d.seq)
	}
	r := &b.receivers[d.replica]
	heard := r.acked >= d.seq
	same := heard && !r.uncompared && !r.differs
	switch {
	case !heard && a.v.Live(receiver):
		return false
	case m != nil:
		h := newHash(d.key)
		produced := h.digest(m)
		if same {
			d.received = produced
		}
		a.vote(d, m, produced)
	case same: // the message was compared, and dropped since
		a.vote(d, &protection.Message{Seq: d.seq}, d.received)
	}
	return true
}

// vote reports the digest of this process's version of the message of d.
func (a *audit) vote(d dispute, m *protection.Message, produced digest) {
	a.out.Diverged = append(a.out.Diverged, protection.Divergence{
		Receiver: view.Process{Rank: d.rank, Replica: d.replica}, Context: d.context, Seq: d.seq,
		Tag: m.Tag, Length: uint64(len(m.Payload)), Produced: uint64(produced), Received: uint64(d.received),
	})
}
