package reservation

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

// newHost returns a host on loopback that knows the addresses of others.
func newHost(t *testing.T, others ...host.Host) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	own := loopback.Wrap(h)
	t.Cleanup(func() { own.Close() })
	for _, o := range others {
		h.Peerstore().AddAddrs(o.ID(), o.Addrs(), peerstore.PermanentAddrTTL)
	}
	return own
}

func newService(t *testing.T, h host.Host, limits Limits) *Service {
	t.Helper()
	s := NewService(h, Config{Limits: limits, Log: zerolog.Nop()})
	t.Cleanup(func() { s.Close() })
	return s
}

// await waits until the service reports the given number of free slots.
func await(t *testing.T, s *Service, free int) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for s.Snapshot().Free != free {
		select {
		case <-s.Changed():
		case <-deadline:
			t.Fatalf("%+v, want %d free", s.Snapshot(), free)
		}
	}
}

func TestReserveOverLibp2p(t *testing.T) {
	hosts := []host.Host{newHost(t), newHost(t)}
	own := newHost(t, hosts...)
	services := []*Service{newService(t, hosts[0], Limits{Slots: 2}), newService(t, hosts[1], Limits{Slots: 2}), newService(t, own, Limits{Slots: 2})}
	var candidates []Candidate
	for _, h := range append(hosts, own) {
		candidates = append(candidates, Candidate{Peer: h.ID(), Slots: 2})
	}
	gone := newHost(t)
	own.Peerstore().AddAddrs(gone.ID(), gone.Addrs(), peerstore.PermanentAddrTTL)
	gone.Close()
	candidates = append(candidates, Candidate{Peer: gone.ID(), Slots: 2})

	res, err := Reserve(t.Context(), NewClient(own), candidates, Need{Job: "j", N: 2, R: 3, Strategy: Concentrate})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range res.Placements {
		if p.Peer != candidates[i].Peer || len(p.Processes) != 2 || p.Processes[0] != (view.Process{Rank: 0, Replica: i}) {
			t.Errorf("placement %d: %+v", i, p)
		}
	}
	// One peer starts its processes; the others' slots are given back.
	if n, err := services[0].Redeem(res.Placements[0].Key, "j", own.ID()); n != 2 || err != nil {
		t.Errorf("redeem: %d, %v", n, err)
	}
	res.Release(t.Context(), NewClient(own))
	await(t, services[0], 0)
	await(t, services[1], 2)
	await(t, services[2], 2)
	services[0].Release(res.Placements[0].Key)
	await(t, services[0], 2)
}

func TestRefusalsContainTheirReason(t *testing.T) {
	server := newHost(t)
	client := newHost(t, server)
	other := newHost(t)
	tests := []struct {
		name   string
		limits Limits
		drain  bool
		call   func(c *Client) error
		want   error
	}{
		{"busy", Limits{}, false, holdAt(server, 1), Busy},
		{"denied", Limits{Slots: 1, Judge: judging(Verdict{Refused: Denied})}, false, holdAt(server, 1), Denied},
		{"draining", Limits{Slots: 1}, true, holdAt(server, 1), Draining},
		{"no slots requested", Limits{Slots: 1}, false, holdAt(server, 0), Malformed},
		{"too many slots requested", Limits{Slots: 1}, false, holdAt(server, maxSlots+1), Malformed},
		{"unknown key", Limits{Slots: 1}, false, func(c *Client) error {
			return c.Confirm(context.Background(), server.ID(), Key{1}, 1)
		}, UnknownKey},
		{"unreachable", Limits{}, false, holdAt(other, 1), Unreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, server, tt.limits)
			if tt.drain {
				s.Drain()
			}
			if err := tt.call(NewClient(client)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			s.Close()
		})
	}
	// Without a service the peer does not speak the protocol.
	if err := holdAt(server, 1)(NewClient(client)); !errors.Is(err, Version) {
		t.Errorf("got %v, want %v", err, Version)
	}
}

func holdAt(at host.Host, slots int) func(*Client) error {
	return func(c *Client) error {
		_, err := c.Hold(context.Background(), at.ID(), Request{Job: "j", Slots: slots})
		return err
	}
}

func TestKeyOfAnotherSubmitterIsRefused(t *testing.T) {
	server := newHost(t)
	s := newService(t, server, Limits{Slots: 2})
	mine, theirs := newHost(t, server), newHost(t, server)
	g, err := NewClient(mine).Hold(t.Context(), server.ID(), Request{Job: "j", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	thief := NewClient(theirs)
	if err := thief.Confirm(t.Context(), server.ID(), g.Key, 1); !errors.Is(err, UnknownKey) {
		t.Errorf("confirm: %v, want %v", err, UnknownKey)
	}
	if err := thief.Release(t.Context(), server.ID(), "j", false); err != nil {
		t.Errorf("release: %v", err)
	}
	if got := s.Snapshot().Held; got != 2 {
		t.Errorf("%d held, want 2", got)
	}
}

// converse sends one request unchanged and returns the answer.
func converse(t *testing.T, from host.Host, to p2ppeer.ID, q *pb.Request) *pb.Answer {
	t.Helper()
	stream, err := from.NewStream(t.Context(), to, protocolID)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(q); err != nil {
		t.Fatal(err)
	}
	var a pb.Answer
	if err := pbio.NewDelimitedReader(stream, maxMessage).ReadMsg(&a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// TestS4AbandonedHoldIsReleased: the submitter stops waiting when the hold is made, and sends no Release
// afterwards.
func TestS4AbandonedHoldIsReleased(t *testing.T) {
	server := newHost(t)
	s := newService(t, server, Limits{Slots: 2})
	reset := func(stream network.Stream) { stream.Reset() }
	cases := map[string]struct {
		client  host.Host
		abandon func(network.Stream)
	}{
		"over the network": {newHost(t, server), reset},
		"at its own peer":  {server, reset},
		"connection ends":  {newHost(t, server), func(stream network.Stream) { stream.Conn().Close() }},
		"connection breaks": {newHost(t, server), func(stream network.Stream) {
			for _, c := range server.Network().ConnsToPeer(stream.Conn().LocalPeer()) {
				c.Close()
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stream, err := c.client.NewStream(t.Context(), server.ID(), protocolID)
			if err != nil {
				t.Fatal(err)
			}
			if err := pbio.NewDelimitedWriter(stream).WriteMsg(holdRequest(Request{Job: "j", Slots: 2})); err != nil {
				t.Fatal(err)
			}
			await(t, s, 0)
			c.abandon(stream)
			await(t, s, 2)
		})
	}
}

// TestAbandonedRequestIsReset: the submitter resets a stream that it gives up, and closes an answered one.
// The peer can distinguish the two.
func TestAbandonedRequestIsReset(t *testing.T) {
	server := newHost(t)
	asked, ends := make(chan struct{}), make(chan error)
	answer := make(chan bool, 1)
	server.SetStreamHandler(protocolID, func(s network.Stream) {
		defer s.Close()
		var q pb.Request
		if err := pbio.NewDelimitedReader(s, maxMessage).ReadMsg(&q); err != nil {
			t.Error(err)
		}
		if <-answer {
			key := newKey()
			pbio.NewDelimitedWriter(s).WriteMsg(&pb.Answer{Key: key[:], Slots: 1, LeaseMillis: 1000})
		}
		asked <- struct{}{}
		_, err := s.Read(make([]byte, 1))
		ends <- err
	})
	for _, answers := range []bool{true, false} {
		answer <- answers
		ctx, cancel := context.WithCancel(t.Context())
		held := make(chan error, 1)
		go func() { // ends with ctx at the latest
			_, err := NewClient(newHost(t, server)).Hold(ctx, server.ID(), Request{Job: "j", Slots: 1})
			held <- err
		}()
		<-asked
		if !answers {
			cancel()
		}
		if err := <-held; (err == nil) != answers {
			t.Errorf("the peer answers: %v, but the submitter got %v", answers, err)
		}
		if err := <-ends; errors.Is(err, io.EOF) != answers {
			t.Errorf("the peer answers: %v, but it reads %v", answers, err)
		}
		cancel()
	}
}

func TestOtherVersionIsReported(t *testing.T) {
	server := newHost(t)
	newService(t, server, Limits{Slots: 1})
	q := holdRequest(Request{Job: "j", Slots: 1})
	q.Protocol = version.Protocol + 1
	if got := converse(t, newHost(t, server), server.ID(), q).GetReason(); got != pb.Reason_VERSION {
		t.Errorf("the peer answered %v, want VERSION", got)
	}
}

func TestInvalidRequestsAreReset(t *testing.T) {
	server := newHost(t)
	s := newService(t, server, Limits{Slots: 1})
	client := newHost(t, server)
	tests := map[string][]byte{
		"longer than allowed": {0xff, 0xff, 0x7f},
		"not protobuf":        {2, 0xff, 0xff},
		"endless length":      {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	for name, b := range tests {
		stream, err := client.NewStream(t.Context(), server.ID(), protocolID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write(b); err != nil {
			t.Fatal(err)
		}
		if n, err := stream.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes of answer", name, n)
		}
		_ = stream.Reset()
	}
	if got := s.Snapshot().Free; got != 1 {
		t.Errorf("%d free, want 1", got)
	}
}

func TestSilentPeerTimesOut(t *testing.T) {
	server := newHost(t)
	server.SetStreamHandler(protocolID, func(network.Stream) {})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := NewClient(newHost(t, server)).Hold(ctx, server.ID(), Request{Job: "j", Slots: 1})
	if !errors.Is(err, Silent) {
		t.Errorf("got %v, want %v", err, Silent)
	}
}

func TestCloseResetsIdleStreams(t *testing.T) {
	server := newHost(t)
	s := newService(t, server, Limits{Slots: 1})
	stream, err := newHost(t, server).NewStream(t.Context(), server.ID(), protocolID)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Reset()
	if _, err := stream.Write([]byte{9}); err != nil { // the length of a message that never arrives
		t.Fatal(err)
	}
	began := time.Now()
	s.Close()
	s.Close()
	if took := time.Since(began); took > streamTimeout/2 {
		t.Errorf("closing took %v", took)
	}
}

// TestS2LeaseExpires uses no network, because the handler is not called.
func TestS2LeaseExpires(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := NewService(noNetwork{}, Config{Limits: Limits{Slots: 2}, Log: zerolog.Nop()})
		defer s.Close()
		if _, err := s.hold(Request{Job: "j", Submitter: alice, Slots: 2}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-s.Changed() // the hold itself
		<-s.Changed() // its end
		if took, want := time.Since(began), HoldBase+2*HoldPerSlot; took != want {
			t.Errorf("the lease ended after %v, want %v", took, want)
		}
		if got := s.Snapshot().Free; got != 2 {
			t.Errorf("%d free, want 2", got)
		}
	})
}

// noNetwork is an unreachable host.
type noNetwork struct{ host.Host }

func (noNetwork) SetStreamHandler(protocol.ID, network.StreamHandler) {}
func (noNetwork) RemoveStreamHandler(protocol.ID)                     {}

// TestPolicyRefusalsAreLogged: the request and the reason of its refusal are logged once, however often
// the submitter asks. A refusal because slots are busy is not logged.
func TestPolicyRefusalsAreLogged(t *testing.T) {
	server := newHost(t)
	client := newHost(t, server)
	log := new(logtest.Log)
	s := NewService(server, Config{Log: zerolog.New(log).Level(zerolog.InfoLevel), Limits: Limits{
		Judge: judging(Verdict{Refused: WasmOnly, Class: "everyone"}),
	}})
	t.Cleanup(func() { s.Close() })
	for range 20 {
		_, err := NewClient(client).Hold(t.Context(), server.ID(), Request{Job: "j", Slots: 1, Kinds: []string{"native"}})
		if !errors.Is(err, WasmOnly) {
			t.Fatalf("Hold returned %v, want WasmOnly", err)
		}
	}
	for _, want := range []string{client.ID().String(), `"job":"j"`, `"class":"everyone"`, `"kinds":["native"]`, "wasm only"} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%q occurs %d times in the log\n%s", want, n, log)
		}
	}
	busy := new(logtest.Log)
	other := NewService(client, Config{Log: zerolog.New(busy).Level(zerolog.InfoLevel)})
	t.Cleanup(func() { other.Close() })
	if _, err := NewClient(client).Hold(t.Context(), client.ID(), Request{Job: "j", Slots: 1}); !errors.Is(err, Busy) || busy.String() != "" {
		t.Errorf("got %v, and the log\n%s", err, busy)
	}
}
