package faultdetect

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
)

func TestMessagesRoundTrip(t *testing.T) {
	for name, m := range map[string]Message{
		"table":      {From: 1, To: 2, Kind: Table, Heartbeat: 500, Table: []uint64{0, 500, 517, maxHeartbeat}},
		"ping":       {From: 1, To: 2, Kind: Ping, Heartbeat: maxHeartbeat},
		"pong":       {From: 1, To: 2, Kind: Pong},
		"ask":        {From: 1, To: 2, Kind: Ask, Heartbeat: 7, About: 3},
		"confirm":    {From: 1, To: 2, Kind: Confirm, Heartbeat: 7},
		"accusation": {From: 1, To: 2, Kind: Accuse, Heartbeat: 7, About: 2, Tree: Backward, Reach: 3},
	} {
		got, err := (&decoder{from: 1, to: 2, n: 4}).decode(new(Encoder).encode(m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, m)
		}
	}
}

func TestO4DecodeRefuses(t *testing.T) {
	const least, most = -1 << 63, 1<<63 - 1
	for name, b := range map[string]*pb.Beat{
		"empty":            {},
		"unknown kind":     {Kind: 9},
		"short table":      {Kind: pb.Beat_TABLE, Lag: []int64{0, 0, 0}},
		"long table":       {Kind: pb.Beat_TABLE, Lag: make([]int64, 5)},
		"table in a ping":  {Kind: pb.Beat_PING, Lag: make([]int64, 4)},
		"about no member":  {Kind: pb.Beat_ASK, About: 4},
		"about its sender": {Kind: pb.Beat_VOUCH, About: 1},
		"pong about":       {Kind: pb.Beat_PONG, About: 2},
		"endless reach":    {Kind: pb.Beat_ACCUSE, About: 2, Reach: 1<<32 - 1},
		"table with reach": {Kind: pb.Beat_TABLE, Lag: make([]int64, 4), Reach: 1},
		"huge heartbeat":   {Kind: pb.Beat_PONG, Heartbeat: maxHeartbeat + 1},
		"below zero":       {Kind: pb.Beat_TABLE, Heartbeat: 7, Lag: []int64{0, 0, 0, 8}},
		"least lag":        {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{least, 0, 0, 0}},
		"greatest lag":     {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{most, 0, 0, 0}},
		"no table before":  {Kind: pb.Beat_TABLE, Heartbeat: 7, Lag: []int64{1}, Skip: []uint32{1}},
		"skip in a ping":   {Kind: pb.Beat_PING, Skip: []uint32{1}},
		"above the limit":  {Kind: pb.Beat_TABLE, Heartbeat: maxHeartbeat, Lag: []int64{-1, 0, 0, 0}},
	} {
		if m, err := (&decoder{from: 1, to: 2, n: 4}).decode(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, m)
		}
	}
}

func TestO4DecodeRefusesDifferencesBeyondTheGroup(t *testing.T) {
	for name, b := range map[string]*pb.Beat{
		"skip too far":        {Lag: []int64{1}, Skip: []uint32{4}},
		"skips too far":       {Lag: []int64{1, 1}, Skip: []uint32{2, 1}},
		"skip that overflows": {Lag: []int64{1, 1}, Skip: []uint32{1<<32 - 1, 1<<32 - 1}},
		"more skips":          {Lag: []int64{1}, Skip: []uint32{0, 0}},
		"fewer skips":         {Lag: []int64{1, 1}, Skip: []uint32{0}},
	} {
		b.Kind, b.Heartbeat = pb.Beat_TABLE, 9
		d := decoder{from: 1, to: 2, n: 4, last: make([]int64, 4)}
		if m, err := d.decode(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, m)
		}
	}
}

// FuzzDecode checks that no input makes decode panic, return more than it received, or pass Receive a
// message that it rejects.
func FuzzDecode(f *testing.F) {
	for _, m := range []Message{
		{Kind: Table, Heartbeat: 500, Table: []uint64{0, 500, 517, 499}},
		{Kind: Ping, Heartbeat: 1},
		{Kind: Pong, Heartbeat: maxHeartbeat},
		{Kind: Ask, Heartbeat: 1, About: 3},
		{Kind: Confirm, Heartbeat: 1, About: 3},
		{Kind: Accuse, Heartbeat: 1, About: 3, Tree: Backward, Reach: 3},
	} {
		raw, err := proto.Marshal(new(Encoder).encode(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{8, 1, 16, 99, 26, 4, 0, 2, 4, 6}) // followed by a difference only
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b pb.Beat
		if len(raw) > maxBeat(4) || proto.Unmarshal(raw, &b) != nil {
			return
		}
		first := Message{From: 1, To: 2, Kind: Table, Heartbeat: 9, Table: []uint64{1, 9, 3, 4}}
		in, out := decoder{from: 1, to: 2, n: 4}, Encoder{}
		if _, err := in.decode(out.encode(first)); err != nil {
			t.Fatal(err)
		}
		m, err := in.decode(&b)
		if err != nil {
			return
		}
		d := newDetector(t, 4, 2)
		if _, err := d.Receive(0, m); err != nil {
			t.Errorf("the decoder accepted a message that the detector refuses: %v", err)
		}
		again, err := (&decoder{from: 1, to: 2, n: 4, last: []int64{8, 0, 6, 5}}).decode(out.encode(m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("got %+v, %v; want %+v", again, err, m)
		}
	})
}

func TestTablesAreSentAsDifferences(t *testing.T) {
	e, d := Encoder{}, decoder{from: 1, to: 2, n: 8}
	tests := []struct {
		name string
		m    Message
		sent int // number of heartbeats
	}{
		{"first", Message{Heartbeat: 100, Table: []uint64{99, 100, 98, 97, 96, 95, 94, 93}}, 8},
		{"a cycle later", Message{Heartbeat: 106, Table: []uint64{105, 106, 104, 103, 102, 101, 100, 99}}, 0},
		{"one lags", Message{Heartbeat: 112, Table: []uint64{111, 112, 110, 99, 108, 107, 106, 105}}, 1},
		{"first and last", Message{Heartbeat: 118, Table: []uint64{111, 118, 116, 105, 114, 113, 112, 105}}, 2},
		{"all but one", Message{Heartbeat: 124, Table: []uint64{1, 124, 2, 3, 4, 5, 6, 7}}, 8},
	}
	for _, tt := range tests {
		tt.m.From, tt.m.To, tt.m.Kind = 1, 2, Table
		b := e.encode(tt.m)
		got, err := d.decode(b)
		if err != nil || !reflect.DeepEqual(got, tt.m) || len(b.Lag) != tt.sent {
			t.Errorf("%s: got %+v, %v with %d heartbeats sent; want %+v, %d", tt.name, got, err, len(b.Lag), tt.m, tt.sent)
		}
		ping := Message{From: 1, To: 2, Kind: Ping, Heartbeat: tt.m.Heartbeat}
		if got, err := d.decode(e.encode(ping)); err != nil || !reflect.DeepEqual(got, ping) {
			t.Errorf("%s: then got %+v, %v; want %+v", tt.name, got, err, ping)
		}
	}
}

// BenchmarkBytesPerPeriod reports how many bytes, including the length prefix, a member of a group of 64
// sends in a period in which its whole table is new to the target.
func BenchmarkBytesPerPeriod(b *testing.B) {
	m := Message{Kind: Table, Heartbeat: 100_000, Table: make([]uint64, 64)}
	for i := range m.Table {
		m.Table[i] = m.Heartbeat - uint64(i%7)
	}
	size := 0
	for range b.N {
		size = new(Encoder).Size(m)
	}
	b.ReportMetric(float64(size), "bytes/period")
}
