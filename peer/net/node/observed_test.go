package node

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/rs/zerolog"
)

func TestNATKinds(t *testing.T) {
	const home, elsewhere, public = "192.168.1.5:7400", "192.168.1.5:7401", "203.0.113.50:7400"
	at := func(transport, local, observer, seen string) observedAddr {
		return observedAddr{transport, netip.MustParseAddrPort(local), netip.MustParseAddr(observer), netip.MustParseAddrPort(seen)}
	}
	tests := map[string]struct {
		all  []observedAddr
		want map[string]string
	}{
		"no connection": {nil, nil},
		"one observer": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"),
		}, nil},
		"the same port": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", home, "203.0.113.2", "198.51.100.7:5000"),
		}, map[string]string{"tcp": IndependentNAT}},
		"other ports": {[]observedAddr{
			at("udp", home, "203.0.113.1", "198.51.100.7:5000"), at("udp", home, "203.0.113.2", "198.51.100.7:5001"),
		}, map[string]string{"udp": SymmetricNAT}},
		"one of three lies": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", home, "203.0.113.2", "198.51.100.7:1"),
			at("tcp", home, "203.0.113.3", "198.51.100.7:5000"),
		}, map[string]string{"tcp": IndependentNAT}},
		"two of one observer": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", home, "203.0.113.1", "198.51.100.7:5001"),
		}, nil},
		"two sockets": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", elsewhere, "203.0.113.2", "198.51.100.7:5001"),
		}, nil},
		"neighbours": {[]observedAddr{
			at("tcp", home, "192.168.1.6", home), at("tcp", home, "192.168.1.7", home),
		}, nil},
		"a neighbour and one beyond": {[]observedAddr{
			at("tcp", home, "192.168.1.6", home), at("tcp", home, "203.0.113.1", "198.51.100.7:5000"),
		}, nil},
		"a public address of its own": {[]observedAddr{
			at("tcp", public, "203.0.113.1", public), at("udp", public, "192.168.1.6", public),
			at("udp", home, "203.0.113.1", "198.51.100.7:5000"), at("udp", home, "203.0.113.2", "198.51.100.7:5001"),
		}, map[string]string{"tcp": NoNAT, "udp": SymmetricNAT}},
		"each transport": {[]observedAddr{
			at("udp", home, "203.0.113.1", "198.51.100.7:5000"), at("udp", home, "203.0.113.2", "198.51.100.7:5001"),
			at("tcp", home, "203.0.113.1", "198.51.100.7:6000"), at("tcp", home, "203.0.113.2", "198.51.100.7:6000"),
		}, map[string]string{"tcp": IndependentNAT, "udp": SymmetricNAT}},
	}
	own := []netip.Addr{netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("203.0.113.50")}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := natKinds(test.all, own); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestObservedAddressesOfOutgoingConnectionsOnly makes one host dial another.
func TestObservedAddressesOfOutgoingConnectionsOnly(t *testing.T) {
	first, dialled := newObservedHost(t)
	second, dialling := newObservedHost(t)
	if err := second.Connect(t.Context(), *host.InfoFromHost(first)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); len(dialling.all()) == 0; {
		if time.Now().After(end) {
			t.Fatal("no observedAddr")
		}
		time.Sleep(time.Millisecond) // interval between polls
	}
	s := dialling.all()[0]
	if s.transport != "tcp" || s.seen != s.local || !s.observer.IsLoopback() {
		t.Errorf("got %+v, want the address that the connection has", s)
	}
	if all := dialled.all(); len(all) > 0 {
		t.Errorf("got %+v from dialled peers", all)
	}
}

// newObservedHost returns a host, and the addresses that others observe it at.
func newObservedHost(t *testing.T) (host.Host, *observedAddrs) {
	t.Helper()
	h := newTestHost(t, onLoopback)
	w, err := Watch(h, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return h, &w.observed
}
