package faultdetect

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
)

// maxHello bounds a Hello in bytes: a job's name and the framing.
const maxHello = 512

// maxBeat bounds a Beat of a group of n in bytes: the longest varints for each member, plus the other
// fields.
func maxBeat(n int) int { return 64 + 15*n }

var kindToPB = map[Kind]pb.Beat_Kind{
	Table: pb.Beat_TABLE, Ping: pb.Beat_PING, Pong: pb.Beat_PONG,
	Ask: pb.Beat_ASK, Confirm: pb.Beat_VOUCH, Accuse: pb.Beat_ACCUSE,
}

// An Encoder encodes the messages to one member for one stream. For a table it sends how far each
// heartbeat is behind the sender's own, and only where that differs from the previous table on the
// stream. The rounds repeat, and so do these numbers, so the difference is empty as long as no member
// fails.
type Encoder struct {
	last []int64 // lags of the last table; nil before the first
}

// Size returns the encoded length of a message, including its length prefix.
func (e *Encoder) Size(m Message) int {
	size := proto.Size(e.encode(m))
	return size + protowire.SizeVarint(uint64(size))
}

func (e *Encoder) encode(m Message) *pb.Beat {
	b := &pb.Beat{
		Kind: kindToPB[m.Kind], Heartbeat: m.Heartbeat,
		About: uint32(m.About), Backward: m.Tree == Backward, Reach: uint32(m.Reach),
	}
	if m.Kind != Table {
		return b
	}
	lags := make([]int64, len(m.Table))
	next := 0 // index after the last entry that differs
	for i, h := range m.Table {
		lags[i] = int64(m.Heartbeat) - int64(h)
		if e.last != nil && e.last[i] != lags[i] {
			b.Skip = append(b.Skip, uint32(i-next))
			b.Lag = append(b.Lag, lags[i])
			next = i + 1
		}
	}
	if e.last == nil || 2*len(b.Skip) >= len(lags) {
		b.Skip, b.Lag = nil, lags
	}
	e.last = lags
	return b
}

// A decoder reverses the Encoder at the other end of a stream.
type decoder struct {
	from, to, n int
	last        []int64
}

// decode decodes a message of member from to member to of n. It also rejects messages that Receive would
// reject, so that the stream can be reset.
func (d *decoder) decode(b *pb.Beat) (Message, error) {
	m := Message{From: d.from, To: d.to, Heartbeat: b.GetHeartbeat(), About: int(b.GetAbout()), Reach: int(b.GetReach())}
	for kind, k := range kindToPB {
		if k == b.GetKind() {
			m.Kind = kind
		}
	}
	if b.GetBackward() {
		m.Tree = Backward
	}
	if m.Heartbeat > maxHeartbeat {
		return Message{}, fmt.Errorf("heartbeat %d exceeds %d", m.Heartbeat, uint64(maxHeartbeat))
	}
	if err := d.table(&m, b); err != nil {
		return Message{}, err
	}
	if err := m.check(d.to, d.n); err != nil {
		return Message{}, err
	}
	return m, nil
}

// table decodes the table of a message of kind Table.
func (d *decoder) table(m *Message, b *pb.Beat) error {
	if m.Kind != Table {
		if len(b.GetLag())+len(b.GetSkip()) != 0 {
			return fmt.Errorf("%d heartbeats in a message of kind %d", len(b.GetLag()), m.Kind)
		}
		return nil
	}
	lags, err := d.lags(b)
	if err != nil {
		return err
	}
	m.Table = make([]uint64, d.n)
	for i, lag := range lags {
		h := int64(m.Heartbeat) - lag
		if lag < -maxHeartbeat || h < 0 || h > maxHeartbeat {
			return errors.New("heartbeat out of range")
		}
		m.Table[i] = uint64(h)
	}
	d.last = lags
	return nil
}

// lags applies the differences to the previous table.
func (d *decoder) lags(b *pb.Beat) ([]int64, error) {
	changed, skip := b.GetLag(), b.GetSkip()
	if len(skip) == 0 && len(changed) == d.n {
		return changed, nil
	}
	if len(changed) != len(skip) || d.last == nil {
		return nil, fmt.Errorf("%d heartbeats of %d, %d skips", len(changed), d.n, len(skip))
	}
	lags := slices.Clone(d.last)
	next := uint64(0)
	for i, lag := range changed {
		if next += uint64(skip[i]); next >= uint64(d.n) {
			return nil, fmt.Errorf("heartbeat of member %d of %d", next, d.n)
		}
		lags[next] = lag
		next++
	}
	return lags, nil
}
