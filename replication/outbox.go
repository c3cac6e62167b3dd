package replication

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// maxContexts bounds the number of contexts that frames of one rank can add to the state of this process.
const maxContexts = 1 << 16

// A stream is identified by its context and the rank at the other end.
type stream struct {
	context uint32
	rank    int
}

// An outbox is the backup table, with the state of the destinations.
type outbox struct {
	*core
	order    uint64 // number of messages kept so far; orders messages as in the program
	retained int    // payload bytes in the table, plus one per message
	streams  map[stream]*backlog
	all      []*backlog  // the values of streams, in order of creation, so that output is deterministic
	foreign  map[int]int // per rank: number of backlogs created by an Ack before a Send
}

// A backlog is the part of the backup table for one stream.
type backlog struct {
	context   uint32
	dest      int
	seq       uint64     // number of the last message produced
	sum       uint64     // digest of all messages produced
	receivers []receiver // the replicas of dest
	queue     []backup   // kept messages ordered by Seq, from head on
	head      int
}

// A receiver is one replica of the destination of a stream.
type receiver struct {
	acked      uint64  // the receiver has every message up to this number
	claims     []claim // digests of received messages that this process has not produced yet
	differs    bool    // a received message differs from the one that this process has produced; reported once
	uncompared bool    // not all received messages were compared
}

// A backup is one message of the table.
type backup struct {
	m     protection.Message
	order uint64
	of    *backlog
}

func newOutbox(c *core) *outbox {
	return &outbox{core: c, streams: make(map[stream]*backlog), foreign: make(map[int]int)}
}

// to returns the backlog of a stream.
func (o *outbox) to(context uint32, dest int) *backlog {
	s := stream{context, dest}
	b := o.streams[s]
	if b == nil {
		b = &backlog{context: context, dest: dest, receivers: make([]receiver, o.v.R)}
		o.streams[s] = b
		o.all = append(o.all, b)
	}
	return b
}

// acknowledged returns the backlog of a stream that an acknowledgement names. It bounds the number of streams on
// which this process has not sent.
func (o *outbox) acknowledged(context uint32, dest int) (*backlog, error) {
	if o.streams[stream{context, dest}] == nil {
		if o.foreign[dest] >= maxContexts {
			return nil, fmt.Errorf("more than %d contexts", maxContexts)
		}
		o.foreign[dest]++
	}
	return o.to(context, dest), nil
}

// grow makes room for the replicas of the view.
func (o *outbox) grow() {
	for _, b := range o.all {
		b.receivers = grown(b.receivers, o.v.R)
	}
}

// grown returns s, extended with zero values to length.
func grown[T any](s []T, length int) []T { return append(s, make([]T, length-len(s))...) }

// keep adds m to the table. If every live replica of its destination already has it, kept is false.
func (o *outbox) keep(b *backlog, m protection.Message) (kept bool) {
	if b.settled(o.live[b.dest]) >= m.Seq {
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
		o.out.Released = append(o.out.Released, m.Payload)
	}
}

// settled returns the number up to which every live replica of the destination has the messages. Without
// a live replica it returns the maximum.
func (b *backlog) settled(live []view.Process) uint64 {
	upTo := uint64(math.MaxUint64)
	for _, q := range live {
		upTo = min(upTo, b.receivers[q.Replica].acked)
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
func (o *outbox) forget(b *backlog) { o.forgetUpTo(b, b.settled(o.live[b.dest])) }

func (o *outbox) forgetUpTo(b *backlog, upTo uint64) {
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
func (o *outbox) forgetGone() {
	for _, b := range o.all {
		o.forget(b)
	}
}

// transmit sends m to the live replicas of its destination that lack it.
func (o *outbox) transmit(b *backlog, m protection.Message) {
	f := protection.DataFrame(m)
	for _, q := range o.live[b.dest] {
		if b.receivers[q.Replica].acked < m.Seq {
			o.emit(q, f)
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
func (o *outbox) flush() {
	for _, k := range inOrder(o.all) {
		o.transmit(k.of, k.m)
	}
}

// resend sends q the messages of the backup table that it lacks.
func (o *outbox) resend(q view.Process) {
	var bs []*backlog
	for _, b := range o.all {
		if b.dest == q.Rank {
			bs = append(bs, b)
		}
	}
	for _, k := range inOrder(bs) {
		if k.of.receivers[q.Replica].acked < k.m.Seq {
			o.emit(q, protection.DataFrame(k.m))
		}
	}
}

// admit prepares for q, which is new in the view. From its rank's message log, q must get the messages that this
// process has dropped.
func (o *outbox) admit(q view.Process) {
	for _, b := range o.all {
		if b.dest != q.Rank {
			continue
		}
		forgotten := b.forgotten()
		b.receivers[q.Replica].acked, b.receivers[q.Replica].uncompared = forgotten, forgotten > 0
	}
}

// skip makes seq+1 the number of the next message of b. The earlier messages have arrived wherever they are
// needed, because the creator of the checkpoint had dropped them.
func (o *outbox) skip(b *backlog, seq uint64) {
	o.forgetUpTo(b, math.MaxUint64)
	b.seq = seq
}

// forgotten returns the number of the last message that is no longer kept.
func (b *backlog) forgotten() uint64 {
	if b.head < len(b.queue) {
		return b.queue[b.head].m.Seq - 1
	}
	return b.seq
}

// kept returns message seq from the table, or nil if the table does not contain it. The numbers in the table have
// no gaps.
func (b *backlog) kept(seq uint64) *protection.Message {
	queue := b.queue[b.head:]
	if len(queue) == 0 || seq < queue[0].m.Seq || seq-queue[0].m.Seq >= uint64(len(queue)) {
		return nil
	}
	return &queue[seq-queue[0].m.Seq].m
}
