package switchboard

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/recording"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
)

// FuzzOpenChannel checks that a peer never gets a channel for a process that runs elsewhere, whatever it
// requests.
func FuzzOpenChannel(f *testing.F) {
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close() })
	other, err := p2ppeer.Decode("12D3KooWGRUaNZFQNTiMXxRQSCFS1fCkyjYVeQ5fQrJwGvCbhAnx")
	if err != nil {
		f.Fatal(err)
	}
	service, job := &Service{Host: h, Dials: dialfilter.New()}, strings.Repeat("ab", 16)
	for _, open := range []*pb.Open{
		{Job: job, From: &pb.Process{Rank: 1}, To: &pb.Process{}, Tcp: true},
		{Job: job, From: &pb.Process{}, To: &pb.Process{Rank: 1}, Tcp: true, Probe: true},
		{Job: job, From: &pb.Process{Rank: 1}, To: &pb.Process{}},
		{Job: job, From: &pb.Process{Rank: 1 << 31}},
		{},
	} {
		f.Add(recording.Of(f, open))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		request, err := ReadRequest(recording.New(other, b))
		if err != nil {
			return
		}
		own := view.Process{}
		table, err := NewTable([]*jobpb.Member{
			{Process: jobpb.FromProcess(own), Peer: []byte(h.ID())}, {Process: jobpb.FromProcess(view.Process{Rank: 1}), Peer: []byte(other)},
		}, Place{Self: h.ID(), N: 2, R: 1}, []view.Process{own})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		board := service.NewBoard(ctx, Config{Job: job, Log: zerolog.Nop()})
		board.SetTable(table)
		board.Attach(own, Port{})
		board.Start([]proclink.Kind{proclink.TCP}, 0)
		board.SetView(view.New(2, 1))
		a, err := board.Accept(request)
		if from, to := viewProcess(request.open.From), viewProcess(request.open.To); err == nil && (from != view.Process{Rank: 1} || to != view.Process{}) {
			t.Errorf("a channel from %v to %v", from, to)
		}
		if a.ours != nil {
			t.Error("accepted a stream channel, which the job does not allow")
		}
	})
}

// FuzzOpened checks that any answer to a channel request is an error or usable.
func FuzzOpened(f *testing.F) {
	f.Add(recording.Of(f, &pb.Answer{Direct: true, Addrs: []string{"127.0.0.1:9", "localhost:9", "[::1]:99999"}}))
	f.Add(recording.Of(f, &pb.Answer{Error: "no"}))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f})
	over, cancel := context.WithCancel(context.Background())
	cancel() // nothing is dialed
	f.Fuzz(func(t *testing.T, b []byte) {
		answer, err := ask(context.Background(), recording.New("somebody", b), &pb.Open{})
		if err != nil {
			return
		}
		if answer.Error != "" {
			t.Errorf("%q is no error", answer.Error)
		}
		if conn, err := entrance.Connect(over, answer.Addrs, func(netip.Addr) bool { return true }, entrance.NewToken()); conn != nil || err == nil {
			t.Errorf("connected to %v", answer.Addrs)
		}
	})
}

// FuzzMembership checks that a table that names another peer for a process here is refused.
func FuzzMembership(f *testing.F) {
	b, err := proto.Marshal(&jobpb.Start{Members: []*jobpb.Member{{
		Process: &jobpb.Process{Rank: 1}, Peer: []byte("\x00\x01a"), Addrs: [][]byte{{4, 127, 0, 0, 1}},
	}, nil}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m jobpb.Start
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		own := view.Process{Rank: 1}
		table, err := NewTable(m.Members, Place{Self: "self", Machine: []byte("machine"), N: 2, R: 2}, []view.Process{own})
		if err == nil && table.PeerOf[own] != "self" {
			t.Errorf("own process at %q", table.PeerOf[own])
		}
	})
}
