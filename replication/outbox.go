package replication

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// maxContexts bounds how many contexts the frames of one rank can make this process remember.
const maxContexts = 1 << 16

// A stream is identified by its context and the rank at the other end.
type stream struct {
	context uint32
	rank    int
}

// An outbox is the backup table, with the state of the destinations.
type outbox struct {
	replicas int
	order    uint64 // number of messages kept so far, which orders them as in the program
	retained int    // payload bytes in the table, plus one for each message
	streams  map[stream]*backlog
	all      []*backlog  // the values of streams, in order of creation, so that output is deterministic
	foreign  map[int]int // per rank: number of backlogs created by an Ack before a Send
	claimed  int         // bytes of all claims
	released *[][]byte   // receives the payloads that are no longer kept
}

// A backlog is the part of the backup table for one stream.
type backlog struct {
	context uint32
	dest    int
	seq     uint64   // number of the last message produced
	sum     uint64   // digest of all messages produced
	acked   []uint64 // per replica of dest: it has every message up to this one
	// claims contains, per replica of dest, the digests of messages that it has received and this process
	// has not produced yet.
	claims [][]claim
	// differs marks the replicas of dest that have received something else than this process has
	// produced. A difference is reported once.
	differs []bool
	// uncompared marks the replicas of dest whose received messages were not all compared.
	uncompared []bool
	queue      []backup // kept messages ordered by Seq, from head on
	head       int
}

// A backup is one message of the table.
type backup struct {
	m     protection.Message
	order uint64
	of    *backlog
}

func newOutbox(replicas int) outbox {
	return outbox{replicas: replicas, streams: make(map[stream]*backlog), foreign: make(map[int]int)}
}

// to returns the backlog of a stream.
func (o *outbox) to(context uint32, dest int) *backlog {
	s := stream{context, dest}
	b := o.streams[s]
	if b == nil {
		b = &backlog{context: context, dest: dest, acked: make([]uint64, o.replicas),
			claims: make([][]claim, o.replicas), differs: make([]bool, o.replicas), uncompared: make([]bool, o.replicas)}
		o.streams[s] = b
		o.all = append(o.all, b)
	}
	return b
}

// grow makes room for ranks with the given number of replicas.
func (o *outbox) grow(replicas int) {
	o.replicas = replicas
	for _, b := range o.all {
		b.acked, b.claims = grown(b.acked, replicas), grown(b.claims, replicas)
		b.differs, b.uncompared = grown(b.differs, replicas), grown(b.uncompared, replicas)
	}
}

// grown returns s, extended with zero values to length.
func grown[T any](s []T, length int) []T { return append(s, make([]T, length-len(s))...) }

// keep adds m to the table. If every live replica of its destination already has it, kept is false.
func (o *outbox) keep(b *backlog, m protection.Message, live []view.Process) (kept bool) {
	if b.settled(live) >= m.Seq {
		o.release(m)
		return false
	}
	b.compact()
	b.queue = append(b.queue, backup{m, o.order, b})
	o.order++
	o.retained += len(m.Payload) + 1
	return true
}

// release records that this process no longer needs the payload of m.
func (o *outbox) release(m protection.Message) {
	if len(m.Payload) > 0 {
		*o.released = append(*o.released, m.Payload)
	}
}

// settled returns the number up to which every live replica of the destination has the messages. Without
// a live replica it returns the maximum.
func (b *backlog) settled(live []view.Process) uint64 {
	upTo := uint64(math.MaxUint64)
	for _, q := range live {
		upTo = min(upTo, b.acked[q.Replica])
	}
	return upTo
}

// compact reuses the space of dropped messages once the queue is full and they take half of it or more.
func (b *backlog) compact() {
	if b.head > 0 && b.head >= len(b.queue)/2 && len(b.queue) == cap(b.queue) {
		n := copy(b.queue, b.queue[b.head:])
		clear(b.queue[n:])
		b.queue, b.head = b.queue[:n], 0
	}
}

// forget drops the messages that every live replica of the destination has.
func (o *outbox) forget(b *backlog, live []view.Process) {
	upTo := b.settled(live)
	for b.head < len(b.queue) && b.queue[b.head].m.Seq <= upTo {
		o.retained -= len(b.queue[b.head].m.Payload) + 1
		o.release(b.queue[b.head].m)
		b.queue[b.head] = backup{}
		b.head++
	}
	if b.head == len(b.queue) {
		b.queue, b.head = b.queue[:0], 0
	}
}

// forgetGone drops the messages that were kept only for processes that are no longer live.
func (o *outbox) forgetGone(live [][]view.Process) {
	for _, b := range o.all {
		o.forget(b, live[b.dest])
	}
}

// transmit sends m to the live replicas of its destination that lack it.
func (p *Protocol) transmit(b *backlog, m protection.Message) {
	f := protection.DataFrame(m)
	for _, q := range p.live[b.dest] {
		if b.acked[q.Replica] < m.Seq {
			p.emit(q, f)
		}
	}
}

// inOrder returns the kept messages of the given backlogs in program order.
func inOrder(bs []*backlog) []backup {
	var kept []backup
	for _, b := range bs {
		kept = append(kept, b.queue[b.head:]...)
	}
	slices.SortFunc(kept, func(a, b backup) int { return cmp.Compare(a.order, b.order) })
	return kept
}

// flush sends each message of the backup table to the live replicas of its destination that lack it.
func (p *Protocol) flush() {
	for _, k := range inOrder(p.outbox.all) {
		p.transmit(k.of, k.m)
	}
}

// resend sends q the messages of the backup table that it lacks.
func (p *Protocol) resend(q view.Process) {
	var bs []*backlog
	for _, b := range p.outbox.all {
		if b.dest == q.Rank {
			bs = append(bs, b)
		}
	}
	for _, k := range inOrder(bs) {
		if k.of.acked[q.Replica] < k.m.Seq {
			p.emit(q, protection.DataFrame(k.m))
		}
	}
}

// receiveAck compares the digests from a receiver with this process's messages. It records that from
// has the messages of a stream up to f.Seq, which this process may not have produced yet.
func (p *Protocol) receiveAck(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("acknowledgement without a message number")
	}
	c, err := decodeClaim(f.Seq, f.Payload)
	if err != nil {
		return err
	}
	o := &p.outbox
	if o.streams[stream{f.Context, from.Rank}] == nil {
		if o.foreign[from.Rank] >= maxContexts {
			return fmt.Errorf("more than %d contexts", maxContexts)
		}
		o.foreign[from.Rank]++
	}
	b := o.to(f.Context, from.Rank)
	if f.Seq > b.acked[from.Replica] {
		p.compare(b, from, c)
		b.acked[from.Replica] = f.Seq
		p.answerDisputes(nil, nil)
		o.forget(b, p.live[b.dest])
	}
	return nil
}
