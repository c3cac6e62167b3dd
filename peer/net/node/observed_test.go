package node

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
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
		"two observations of one observer": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", home, "203.0.113.1", "198.51.100.7:5001"),
		}, nil},
		"two sockets": {[]observedAddr{
			at("tcp", home, "203.0.113.1", "198.51.100.7:5000"), at("tcp", elsewhere, "203.0.113.2", "198.51.100.7:5001"),
		}, nil},
		"neighbours": {[]observedAddr{
			at("tcp", home, "192.168.1.6", home), at("tcp", home, "192.168.1.7", home),
		}, nil},
		"a neighbour and a public observer": {[]observedAddr{
			at("tcp", home, "192.168.1.6", home), at("tcp", home, "203.0.113.1", "198.51.100.7:5000"),
		}, nil},
		"a machine with a public address": {[]observedAddr{
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
	all := dialling()
	if len(all) != 1 || all[0].transport != "tcp" || all[0].seen != all[0].local || !all[0].observer.IsLoopback() {
		t.Errorf("the dialling host got %+v, want the local address of the connection", all)
	}
	if all := dialled(); len(all) > 0 {
		t.Errorf("the dialled host got %+v, want none", all)
	}
}

// newObservedHost returns a host, and a function that waits until the host has identified a peer and returns
// the addresses at which peers observe the host.
func newObservedHost(t *testing.T) (host.Host, func() []observedAddr) {
	t.Helper()
	h := newTestHost(t, onLoopback)
	identified, err := h.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { identified.Close() })
	return h, func() []observedAddr {
		t.Helper()
		events := make(recorded, 1)
		select {
		case e := <-identified.Out():
			events <- e
		case <-time.After(time.Minute):
			t.Fatal("no peer was identified")
		}
		events.Close()
		w := &Watcher{host: h, identified: events, done: make(chan struct{})}
		w.run()
		return w.observed.all()
	}
}

// recorded is a subscription that delivers recorded events.
type recorded chan any

func (r recorded) Out() <-chan any { return r }
func (r recorded) Name() string    { return "recorded" }
func (r recorded) Close() error    { close(r); return nil }
