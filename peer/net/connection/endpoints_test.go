package connection

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

func TestAddressesProbedAfterDisconnection(t *testing.T) {
	listens := []ma.Multiaddr{
		ma.StringCast("/ip4/11.0.0.1/tcp/1"), ma.StringCast("/ip4/172.17.0.1/tcp/1"), ma.StringCast("/ip4/11.0.0.1/udp/1/quic-v1"),
		ma.StringCast("/ip4/11.0.0.9/tcp/2/p2p/" + relay + "/p2p-circuit"),
	}
	tests := map[string]struct {
		last string
		want []string
	}{
		"over TCP":                {"/ip4/11.0.0.1/tcp/1", []string{"11.0.0.1:1"}},
		"over QUIC":               {"/ip4/11.0.0.1/udp/1/quic-v1", []string{"11.0.0.1:1"}},
		"peer has dialled":        {"/ip4/11.0.0.1/tcp/40000", []string{"11.0.0.1:1"}},
		"through a relay":         {"/ip4/11.0.0.9/tcp/2/p2p/" + relay + "/p2p-circuit", nil},
		"not a listening address": {"/ip4/11.0.0.7/tcp/40000", nil},
		"within this process":     {"/memory/1", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range endpoints(listens, ma.StringCast(test.last)) {
				got = append(got, d.address)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRefusedIfTheListenerIsClosed(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	o, s, silent := open.Addr().String(), shut.Addr().String(), "192.0.2.1:1"
	ended, end := context.WithCancel(t.Context())
	end()
	tests := map[string]struct {
		ctx  context.Context
		at   []string
		want bool
	}{
		"no listener":               {t.Context(), []string{s}, true},
		"a listener":                {t.Context(), []string{o}, false},
		"no listener at one of two": {t.Context(), []string{o, s}, false},
		"no answer at one of two":   {t.Context(), []string{s, silent}, true},
		"the context has ended":     {ended, []string{s, silent}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var at []endpoint
			for _, a := range test.at {
				at = append(at, endpoint{address: a})
			}
			if got := refused(test.ctx, at); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	elsewhere := []endpoint{{address: s, from: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}}
	if refused(t.Context(), elsewhere) {
		t.Error("a dial from an address that this machine does not have counts as refused")
	}
}

// TestF2StoppedPeerIsRefused checks that AwaitRefused recognizes a peer that has ended, at an address that
// accepted connections before.
func TestF2StoppedPeerIsRefused(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	h, peer := newHost(t), newHost(t)
	if err := h.Connect(t.Context(), *host.InfoFromHost(peer)); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	last := h.Network().ConnsToPeer(peer.ID())[0].RemoteMultiaddr()
	var d Endpoints
	if d.Known(h, peer.ID()) {
		t.Error("an endpoint is known before the probe")
	}
	d.Probe(t.Context(), h, peer.ID())
	if !d.Known(h, peer.ID()) {
		t.Error("no endpoint is known after the probe")
	}
	if d.AwaitRefused(short, last, nil) {
		t.Error("the peer counts as refused while it listens")
	}
	go func() { // ends at once
		peer.Close()
	}()
	if !d.AwaitRefused(t.Context(), last, nil) {
		t.Error("the peer does not count as refused after it has ended")
	}
	relayed := []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/1/p2p/" + h.ID().String() + "/p2p-circuit")}
	soon, cancel := context.WithTimeout(t.Context(), relayRefusal/2)
	defer cancel()
	if d.AwaitRefused(soon, last, relayed) {
		t.Error("the peer counts as refused before there was time to reach it through a relay")
	}
	if !d.AwaitRefused(t.Context(), last, relayed) {
		t.Error("the peer does not count as refused although there was time to reach it through a relay")
	}
	h.Network().ClosePeer(peer.ID())
	if d.Known(h, peer.ID()) {
		t.Error("an endpoint of a disconnected peer is known")
	}
}

// TestF2PeerThatStopsDuringAProbeIsRefused probes a peer that has closed its listeners and is about to close its
// connections. Such a probe must not replace the results of an earlier one.
func TestF2PeerThatStopsDuringAProbeIsRefused(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]bool{"the peer ends": true, "the peer only closes its listeners": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, peer := newHost(t), newHost(t)
			if err := h.Connect(t.Context(), *host.InfoFromHost(peer)); err != nil {
				t.Fatal(err)
			}
			last := h.Network().ConnsToPeer(peer.ID())[0].RemoteMultiaddr()
			var d Endpoints
			d.Probe(t.Context(), h, peer.ID())
			peer.Network().(*swarm.Swarm).ListenClose(peer.Network().ListenAddresses()...)
			asked := make(chan struct{})
			go func() { // ends within seconds
				d.Probe(t.Context(), h, peer.ID())
				close(asked)
			}()
			if goes {
				h.Network().ClosePeer(peer.ID())
			}
			<-asked
			if got := d.AwaitRefused(t.Context(), last, nil); got != goes {
				t.Errorf("the peer counts as refused: %v, want %v", got, goes)
			}
		})
	}
}

// TestV3RefusalAtAnUnverifiedAddressIsIgnored checks that a refusal at an address is ignored if that address
// never accepted a connection. A firewall may refuse connections there, or another machine may have the address.
func TestV3RefusalAtAnUnverifiedAddressIsIgnored(t *testing.T) {
	h, peer := newHost(t), newHost(t)
	if err := peer.Connect(t.Context(), *host.InfoFromHost(h)); err != nil {
		t.Fatal(err)
	}
	last := h.Network().ConnsToPeer(peer.ID())[0].RemoteMultiaddr()
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, err := manet.FromNetAddr(shut.Addr())
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	h.Peerstore().ClearAddrs(peer.ID())
	h.Peerstore().AddAddr(peer.ID(), at, time.Hour)
	var d Endpoints
	if d.AwaitRefused(t.Context(), last, nil) {
		t.Error("the peer counts as refused although no endpoint is known")
	}
	d.Probe(t.Context(), h, peer.ID())
	if len(d.open) > 0 || d.AwaitRefused(t.Context(), last, nil) {
		t.Errorf("the peer counts as refused at an address that never accepted connections: %v", d.open)
	}
}

// TestUnresponsiveAddressesAreRemembered checks that endpoints that do not answer stay known, unless another
// endpoint answers.
func TestUnresponsiveAddressesAreRemembered(t *testing.T) {
	open, shut := error(nil), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	silent, before := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, []string{"a", "b"}
	full := &net.OpError{Op: "dial", Err: syscall.ECONNRESET}
	at := func(address string, err error) answer { return answer{endpoint{address: address}, err} }
	tests := map[string]struct {
		answers []answer
		want    []string
	}{
		"no address answers":                     {[]answer{at("a", silent), at("b", silent), at("c", silent)}, []string{"a", "b"}},
		"the only address does not answer":       {[]answer{at("a", silent)}, []string{"a"}},
		"one does not answer, another refuses":   {[]answer{at("a", silent), at("b", shut)}, nil},
		"one does not answer, a new one accepts": {[]answer{at("a", silent), at("c", open)}, []string{"c"}},
		"one temporarily accepts no connections": {[]answer{at("a", full)}, []string{"a"}},
		"only an unknown address was dialled":    {[]answer{at("c", silent)}, nil},
		"no address was dialled":                 {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var was []endpoint
			for _, a := range before {
				was = append(was, endpoint{address: a})
			}
			var got []string
			for _, d := range opened(test.answers, was) {
				got = append(got, d.address)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("known: %v, want %v", got, test.want)
			}
		})
	}
}

// TestF2ListenerThatStillAcceptsIsProbedAgainSoon simulates a dying process: its listener closes a moment after
// its connections have broken.
func TestF2ListenerThatStillAcceptsIsProbedAgainSoon(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	asked := make(chan struct{}, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Close()
			asked <- struct{}{}
			if len(asked) == 3 {
				listener.Close()
			}
		}
	}()
	d := Endpoints{open: []endpoint{{machine: address.AddrPort().Addr(), address: address.String()}}}
	ctx, cancel := context.WithTimeout(t.Context(), maxRefusedPause)
	defer cancel()
	last := ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", address.Port))
	d.AwaitRefused(ctx, last, nil)
	listener.Close()
	<-ended
	if len(asked) < 2 {
		t.Errorf("%d attempts within %v, want at least 2", len(asked), maxRefusedPause)
	}
}
