package faultdetect

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
)

// maxHello bounds a Hello in bytes: a job's name and the framing.
const maxHello = 512

// maxBeat bounds a Beat of a group of n in bytes: the longest varint for each
// member, and the rest.
func maxBeat(n int) int { return 64 + 10*n }

var kindToPB = map[Kind]pb.Beat_Kind{
	Table: pb.Beat_TABLE, Ping: pb.Beat_PING, Pong: pb.Beat_PONG,
	Ask: pb.Beat_ASK, Vouch: pb.Beat_VOUCH, Accuse: pb.Beat_ACCUSE,
}

func encode(m Message) *pb.Beat {
	b := &pb.Beat{
		Kind: kindToPB[m.Kind], Heartbeat: m.Heartbeat,
		About: uint32(m.About), Backward: m.Tree == Backward, Reach: uint32(m.Reach),
	}
	for _, h := range m.Table {
		b.Lag = append(b.Lag, int64(m.Heartbeat)-int64(h))
	}
	return b
}

// decode reads what member from has sent to member to of n. Whatever Receive
// would refuse is an error here already, so that the stream can be reset.
func decode(b *pb.Beat, from, to, n int) (Message, error) {
	m := Message{From: from, To: to, Heartbeat: b.GetHeartbeat(), About: int(b.GetAbout()), Reach: int(b.GetReach())}
	for kind, k := range kindToPB {
		if k == b.GetKind() {
			m.Kind = kind
		}
	}
	if b.GetBackward() {
		m.Tree = Backward
	}
	want := 0
	if m.Kind == Table {
		want = n
	}
	switch {
	case m.Heartbeat > maxHeartbeat:
		return Message{}, fmt.Errorf("heartbeat %d exceeds %d", m.Heartbeat, uint64(maxHeartbeat))
	case len(b.GetLag()) != want:
		return Message{}, fmt.Errorf("%d heartbeats, want %d", len(b.GetLag()), want)
	}
	for _, lag := range b.GetLag() {
		h := int64(m.Heartbeat) - lag
		if lag < -maxHeartbeat || h < 0 || h > maxHeartbeat {
			return Message{}, errors.New("heartbeat out of range")
		}
		m.Table = append(m.Table, uint64(h))
	}
	return m, m.check(to, n)
}
