package faultdetect

import (
	"bufio"
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/recording"
)

// FuzzStream: whatever a member sends on a stream, the detector receives only messages of that member,
// within its limit, and accepts each.
func FuzzStream(f *testing.F) {
	hello := &pb.Hello{Job: "job"}
	table := Message{From: 1, To: 2, Kind: Table, Heartbeat: 500, Table: []uint64{0, 500, 517, 499}}
	var out Encoder
	f.Add(recording.Of(f, hello, out.encode(table), out.encode(table), out.encode(Message{Kind: Ping, Heartbeat: 1})))
	f.Add(recording.Of(f, &pb.Hello{Job: "another"}, new(Encoder).encode(table)))
	many := []proto.Message{hello}
	for range 2 * maxBeats(4) {
		many = append(many, new(Encoder).encode(Message{Kind: Pong}))
	}
	f.Add(recording.Of(f, many...))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &Group{
			job: "job", peers: []p2ppeer.ID{"a", "b", "c", "d"}, self: 2, period: time.Hour, ctx: context.Background(),
			inbox: make(chan Message, maxBeats(4)+1), inbound: make(map[int]network.Stream),
		}
		s := &Service{groups: map[string]*Group{"job": g}}
		st := recording.New("b", b)
		in := bufio.NewReaderSize(st, 4096)
		joined, from, err := s.hello(st, in)
		if err != nil {
			return
		}
		if joined != g || from != 1 {
			t.Fatalf("b was accepted as member %d", from)
		}
		if err := g.read(st, in, from); err == nil {
			t.Error("the stream has no end")
		}
		if len(g.inbox) > maxBeats(4) {
			t.Errorf("%d messages were accepted within a period", len(g.inbox))
		}
		d := newDetector(t, 4, 2)
		for range len(g.inbox) {
			m := <-g.inbox
			if m.From != 1 || m.To != 2 {
				t.Errorf("b's message counts as another member's: %+v", m)
			}
			if _, err := d.Receive(0, m); err != nil {
				t.Errorf("the decoder accepted a message that the detector refuses: %v", err)
			}
		}
	})
}
