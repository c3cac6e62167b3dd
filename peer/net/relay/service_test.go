package relay

import (
	"context"
	"crypto/rand"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// deadline bounds each wait of a test.
const deadline = 20 * time.Second

// newMember starts a host of a network. If relays are given, other hosts cannot connect to the new host directly.
func newMember(t *testing.T, networkName string, limits Limits, relays ...host.Host) (host.Host, *Service) {
	t.Helper()
	options := []libp2p.Option{libp2p.EnableRelay(), libp2p.DisableMetrics(), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0")}
	if len(relays) > 0 {
		options = append(options, libp2p.NoListenAddrs, libp2p.EnableRelay(), libp2p.ForceReachabilityPrivate())
	}
	h, err := libp2p.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Network: networkName, Limits: limits, Log: zerolog.Nop()}
	for _, r := range relays {
		cfg.Relays = append(cfg.Relays, *host.InfoFromHost(r))
	}
	s, err := New(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		h.Close()
	})
	return h, s
}

func awaitReserved(t *testing.T, s *Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := s.Reserved(ctx); err != nil {
		t.Fatal(err)
	}
}

// echo makes h send back all data that it receives on streams of the protocol /echo.
func echo(h host.Host) {
	h.SetStreamHandler("/echo", func(s network.Stream) {
		io.Copy(s, s)
		s.Close()
	})
}

func open(t *testing.T, from, to host.Host) (network.Stream, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := from.Connect(ctx, p2ppeer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}); err != nil {
		return nil, err
	}
	s, err := from.NewStream(ctx, to.ID(), "/echo")
	if err == nil {
		s.SetDeadline(time.Now().Add(deadline))
	}
	return s, err
}

func TestPeersThatDoNotListenConnectThroughARelay(t *testing.T) {
	relay, _ := newMember(t, "a", Limits{Peers: 8})
	a, sa := newMember(t, "a", Limits{}, relay)
	b, sb := newMember(t, "a", Limits{}, relay)
	awaitReserved(t, sa)
	awaitReserved(t, sb)
	echo(b)
	s, err := open(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if s.Conn().Stat().Limited {
		t.Error("the connection counts as limited, so jobs would not use it")
	}
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	go func() { // ends with the stream
		s.Write(sent)
		s.CloseWrite()
	}()
	if got, err := io.ReadAll(s); err != nil || !slices.Equal(got, sent) {
		t.Errorf("got %d bytes and error %v, want the %d bytes that were sent", len(got), err, len(sent))
	}
}

// TestRelayServesItsNetworkOnly makes a member of another network request a reservation and a circuit.
func TestRelayServesItsNetworkOnly(t *testing.T) {
	relay, _ := newMember(t, "a", Limits{Peers: 8})
	inside, s := newMember(t, "a", Limits{}, relay)
	awaitReserved(t, s)
	echo(inside)
	stranger, _ := newMember(t, "b", Limits{}, relay)
	if _, err := open(t, stranger, inside); err == nil {
		t.Error("a stranger reaches a member")
	}
	expectRefusal(t, stranger, relay)
}

func TestRelayLimitsReservations(t *testing.T) {
	relay, _ := newMember(t, "a", Limits{Peers: 1})
	first, s := newMember(t, "a", Limits{}, relay)
	awaitReserved(t, s)
	second, late := newMember(t, "a", Limits{}, relay)
	expectRefusal(t, second, relay)
	first.Close()
	awaitReserved(t, late)
}

// TestRelayServesManyPeersAtOneAddress makes more peers at one address reserve than the eight that libp2p allows.
func TestRelayServesManyPeersAtOneAddress(t *testing.T) {
	const machines = 12
	relay, _ := newMember(t, "a", Limits{Peers: machines})
	for range machines {
		_, s := newMember(t, "a", Limits{}, relay)
		awaitReserved(t, s)
	}
}

func expectRefusal(t *testing.T, h, relay host.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if _, err := client.Reserve(ctx, h, *host.InfoFromHost(relay)); err == nil {
		t.Error("the relay granted a reservation")
	}
}

// TestCircuitLimits checks that a circuit ends after its bytes or its time.
func TestCircuitLimits(t *testing.T) {
	tests := map[string]Limits{
		"bytes": {Peers: 8, Bytes: 256 << 10},
		"time":  {Peers: 8, Time: 300 * time.Millisecond},
	}
	for name, limits := range tests {
		t.Run(name, func(t *testing.T) {
			relay, _ := newMember(t, "a", limits)
			a, _ := newMember(t, "a", Limits{}, relay)
			b, s := newMember(t, "a", Limits{}, relay)
			awaitReserved(t, s)
			echo(b)
			ended := await(t, a, new(event.EvtPeerConnectednessChanged), func() bool {
				return a.Network().Connectedness(b.ID()) == network.NotConnected
			})
			stream, err := open(t, a, b)
			if err != nil {
				t.Fatal(err)
			}
			block, sent := make([]byte, 16<<10), 0
			for err == nil { // ends with the circuit, or at the stream's deadline
				if _, err = stream.Write(block); err == nil {
					_, err = io.ReadFull(stream, block)
				}
				sent += len(block)
			}
			if limits.Bytes > 0 && int64(sent) > limits.Bytes+int64(len(block)) {
				t.Errorf("the circuit carried %d bytes, want at most %d", sent, limits.Bytes)
			}
			ended("the circuit is still open")
			if _, err := open(t, a, b); err != nil {
				t.Errorf("a second circuit cannot be opened: %v", err)
			}
		})
	}
}

// TestReservationIsRenewedAfterRelayRestart restarts a relay.
func TestReservationIsRenewedAfterRelayRestart(t *testing.T) {
	skip.Long(t)
	relay, s := newMember(t, "a", Limits{Peers: 8})
	at := relay.Addrs()[0]
	key := relay.Peerstore().PrivKey(relay.ID())
	h, reached := newMember(t, "a", Limits{}, relay)
	awaitReserved(t, reached)
	s.Close()
	relay.Close()
	advertised := func() bool { return slices.ContainsFunc(h.Addrs(), connection.IsCircuit) }
	await(t, h, new(event.EvtLocalAddressesUpdated), func() bool { return !advertised() })("the host still advertises the closed relay")
	again, err := libp2p.New(libp2p.Identity(key), libp2p.EnableRelay(), libp2p.DisableMetrics(), libp2p.ListenAddrs(at))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	s, err = New(again, Config{Network: "a", Limits: Limits{Peers: 8}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, h, new(event.EvtLocalAddressesUpdated), advertised)("the host has not reserved at the restarted relay")
}

// TestLostRelayIsReplaced uses a supernode, and a public peer that announces itself as a relay. Another peer
// connects to both, and stays reachable when the supernode closes.
func TestLostRelayIsReplaced(t *testing.T) {
	supernode, given := newMember(t, "a", Limits{Peers: 8})
	public, _ := newMember(t, "a", Limits{Peers: 8})
	h, _ := newMember(t, "a", Limits{}, supernode)
	echo(h)
	through := func(r host.Host) func() bool {
		return func() bool {
			return slices.ContainsFunc(h.Addrs(), func(a ma.Multiaddr) bool { return strings.Contains(a.String(), r.ID().String()) })
		}
	}
	both := await(t, h, new(event.EvtLocalAddressesUpdated), func() bool { return through(supernode)() && through(public)() })
	if err := h.Connect(t.Context(), *host.InfoFromHost(public)); err != nil {
		t.Fatal(err)
	}
	if through(public)() {
		t.Error("the peer has reserved at a relay that does not announce itself")
	}
	emitter, err := public.EventBus().Emitter(new(event.EvtHostReachableAddrsChanged))
	if err != nil {
		t.Fatal(err)
	}
	defer emitter.Close()
	emitter.Emit(event.EvtHostReachableAddrsChanged{Reachable: public.Addrs()})
	both("the peer does not advertise both relays")
	gone := await(t, h, new(event.EvtLocalAddressesUpdated), func() bool { return !through(supernode)() })
	given.Close()
	supernode.Close()
	gone("the peer still advertises the closed supernode")
	other, _ := newMember(t, "a", Limits{}, public)
	if _, err := open(t, other, h); err != nil {
		t.Errorf("the peer is not reached through the other relay: %v", err)
	}
}

// await subscribes to events of a host. It returns a function that waits until holds returns true, and ends the
// test with the given message after deadline.
func await(t *testing.T, h host.Host, about any, holds func() bool) func(otherwise string) {
	t.Helper()
	sub, err := h.EventBus().Subscribe(about)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Close() })
	return func(otherwise string) {
		t.Helper()
		for timeout := time.After(deadline); !holds(); {
			select {
			case <-sub.Out():
			case <-timeout:
				t.Fatal(otherwise)
			}
		}
	}
}
