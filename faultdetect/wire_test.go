package faultdetect

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
)

func TestMessagesSurviveTheWire(t *testing.T) {
	for name, m := range map[string]Message{
		"table": {From: 1, To: 2, Kind: Table, Heartbeat: 500, Table: []uint64{0, 500, 517, maxHeartbeat}},
		"ping":  {From: 1, To: 2, Kind: Ping, Heartbeat: maxHeartbeat},
		"pong":  {From: 1, To: 2, Kind: Pong},
	} {
		got, err := decode(encode(m), 1, 2, 4)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, m)
		}
	}
}

func TestO4DecodeRefuses(t *testing.T) {
	const least, most = -1 << 63, 1<<63 - 1
	for name, b := range map[string]*pb.Beat{
		"nothing":         {},
		"unknown kind":    {Kind: 9},
		"short table":     {Kind: pb.Beat_TABLE, Lag: []int64{0, 0, 0}},
		"long table":      {Kind: pb.Beat_TABLE, Lag: make([]int64, 5)},
		"table in a ping": {Kind: pb.Beat_PING, Lag: make([]int64, 4)},
		"huge heartbeat":  {Kind: pb.Beat_PONG, Heartbeat: maxHeartbeat + 1},
		"below zero":      {Kind: pb.Beat_TABLE, Heartbeat: 7, Lag: []int64{0, 0, 0, 8}},
		"least lag":       {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{least, 0, 0, 0}},
		"greatest lag":    {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{most, 0, 0, 0}},
		"beyond all":      {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{-1, 0, 0, 0}},
	} {
		if m, err := decode(b, 1, 2, 4); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		}
	}
}

// FuzzDecode shows that no bytes make decode panic, take more than it was
// sent, or hand Receive something that it refuses.
func FuzzDecode(f *testing.F) {
	for _, m := range []Message{
		{Kind: Table, Heartbeat: 500, Table: []uint64{0, 500, 517, 499}},
		{Kind: Ping, Heartbeat: 1},
		{Kind: Pong, Heartbeat: maxHeartbeat},
	} {
		raw, err := proto.Marshal(encode(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b pb.Beat
		if len(raw) > maxBeat(4) || proto.Unmarshal(raw, &b) != nil {
			return
		}
		m, err := decode(&b, 1, 2, 4)
		if err != nil {
			return
		}
		d := newDetector(t, 4, 2)
		if _, err := d.Receive(0, m); err != nil {
			t.Errorf("decoded but refused: %v", err)
		}
		again, err := decode(encode(m), 1, 2, 4)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("got %+v, %v; want %+v", again, err, m)
		}
	})
}

// BenchmarkBytesPerPeriod reports what a member of 64 sends in a period, with
// the length before the message.
func BenchmarkBytesPerPeriod(b *testing.B) {
	m := Message{Kind: Table, Heartbeat: 100_000, Table: make([]uint64, 64)}
	for i := range m.Table {
		m.Table[i] = m.Heartbeat - uint64(i%7)
	}
	size := 0
	for range b.N {
		raw, err := proto.Marshal(encode(m))
		if err != nil {
			b.Fatal(err)
		}
		size = len(raw) + 1
	}
	b.ReportMetric(float64(size), "bytes/period")
}
