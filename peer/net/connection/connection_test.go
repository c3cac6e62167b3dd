package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const relay = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"

func TestAddressKinds(t *testing.T) {
	tests := map[string]struct{ relay, transport string }{
		"/ip4/11.0.0.1/tcp/1":                                       {"", "tcp"},
		"/ip4/11.0.0.1/udp/1/quic-v1":                               {"", "quic"},
		"/ip4/11.0.0.1/tcp/1/p2p/" + relay + "/p2p-circuit":         {relay, "tcp"},
		"/ip4/11.0.0.1/udp/1/quic-v1/p2p/" + relay + "/p2p-circuit": {relay, "quic"},
		"/unix/a": {"", "other"},
	}
	for addr, want := range tests {
		a := ma.StringCast(addr)
		got := ""
		if id := connected.RelayOf(a); id != "" {
			got = id.String()
		}
		if got != want.relay || transportOf(a) != want.transport {
			t.Errorf("%s: got %q and %s, want %q and %s", addr, got, transportOf(a), want.relay, want.transport)
		}
	}
}

// TestReasonForAnIndirectConnection applies sequences of libp2p's events about one peer.
func TestReasonForAnIndirectConnection(t *testing.T) {
	start := &holepunch.StartHolePunchEvt{}
	failed := &holepunch.EndHolePunchEvt{Error: "no  way\n in"}
	tests := map[string]struct {
		way       Way
		transport string
		known     bool // a direct address is known
		events    []any
		want      string
	}{
		"direct":               {Direct, "tcp", true, nil, ""},
		"direct, over QUIC":    {Direct, "quic", true, nil, "no TCP connection succeeded first"},
		"punched":              {Punched, "tcp", true, nil, "unreachable from outside: hole-punched through a router"},
		"no attempt":           {Relayed, "tcp", false, nil, "no direct address is known; hole punching was not tried"},
		"not dialled":          {Relayed, "tcp", true, nil, "no direct connection; hole punching was not tried"},
		"dial failed":          {Relayed, "tcp", true, []any{&holepunch.DirectDialEvt{Error: "refused"}, start}, "no direct connection: refused; hole punching is in progress"},
		"hole punching failed": {Relayed, "tcp", true, []any{start, failed, start, failed}, "no direct connection; no hole was punched (attempts: 2): no way in"},
		"could not agree":      {Relayed, "tcp", true, []any{&holepunch.ProtocolErrorEvt{Error: "no address"}}, "no direct connection; no hole was punched (attempts: 1): no address"},
		"worked before":        {Relayed, "tcp", true, []any{start, failed, start, &holepunch.EndHolePunchEvt{Success: true}}, "no direct connection; hole punching was not tried"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var a attempt
			for _, e := range test.events {
				a = a.after(&holepunch.Event{Evt: e})
			}
			if got := why(Connection{Way: test.way, Transport: test.transport}, a, test.known); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPunchedConnectionIsRecognizedByItsTime(t *testing.T) {
	at := time.Unix(1000, 0)
	var a attempt
	a = a.after(&holepunch.Event{Timestamp: at.UnixNano(), Evt: &holepunch.StartHolePunchEvt{}})
	a = a.after(&holepunch.Event{Timestamp: at.Add(time.Second).UnixNano(), Evt: &holepunch.EndHolePunchEvt{Success: true}})
	for after, want := range map[time.Duration]bool{-time.Minute: false, 0: true, time.Second: true, time.Minute: false} {
		if got := a.made(at.Add(after)); got != want {
			t.Errorf("connection opened %v later: made is %v, want %v", after, got, want)
		}
	}
	a = a.after(&holepunch.Event{Evt: &holepunch.EndHolePunchEvt{Error: "e"}})
	if a.made(at) {
		t.Error("a failed attempt counts as the origin of the connection")
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	p := NewPunches()
	long := errors.New(strings.Repeat("ä", 1000)).Error()
	for i := range maxPeers + 10 {
		p.Trace(&holepunch.Event{Timestamp: int64(i), Remote: p2ppeer.ID(fmt.Sprint(i)), Evt: &holepunch.ProtocolErrorEvt{Error: long}})
	}
	if len(p.last) != maxPeers {
		t.Errorf("attempts for %d peers are recorded, want %d", len(p.last), maxPeers)
	}
	if p.of("0").times != 0 || p.of(p2ppeer.ID(fmt.Sprint(maxPeers))).times != 1 {
		t.Error("entries other than the oldest were forgotten")
	}
	if n := len(p.of("20").failed); n > maxReason+len("…") {
		t.Errorf("got a reason of %d bytes, want at most %d", n, maxReason+len("…"))
	}
}

func newHost(t *testing.T) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestConnectionBetweenTwoHosts(t *testing.T) {
	a, b := newHost(t), newHost(t)
	if _, ok := Best(a, b.ID(), nil); ok {
		t.Error("a connection was reported before the hosts connected")
	}
	if err := a.Connect(t.Context(), *host.InfoFromHost(b)); err != nil {
		t.Fatal(err)
	}
	c, ok := Best(a, b.ID(), nil)
	if !ok || c.Way != Direct || c.Transport != "tcp" || c.Why != "" {
		t.Errorf("got %+v, %v; want a direct one", c, ok)
	}
	if rtt, ok := RoundTrip(t.Context(), a, b.ID()); !ok || rtt <= 0 {
		t.Errorf("got a round trip of %v, %v; want more than 0", rtt, ok)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if rtt, ok := RoundTrip(ended, a, b.ID()); ok {
		t.Errorf("got a round trip of %v although the context had ended", rtt)
	}
}

// TestDialFailureNamesTheRelevantAddress uses texts as libp2p generates them.
func TestDialFailureNamesTheRelevantAddress(t *testing.T) {
	failed := func(addrs ...string) string {
		e := swarm.DialError{Peer: "peer", Cause: swarm.ErrAllDialsFailed, Skipped: 3}
		for _, a := range addrs {
			e.DialErrors = append(e.DialErrors, swarm.TransportError{Address: ma.StringCast(a), Cause: errors.New("refused")})
		}
		return e.Error()
	}
	const loopback, private, public = "/ip4/127.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/2", "/ip4/8.8.8.8/tcp/3"
	for text, want := range map[string]string{
		failed(loopback, private, public): public + ": refused (and 2 other addresses)",
		failed(loopback, private):         private + ": refused (and 1 other address)",
		failed(loopback):                  loopback + ": refused",
		"no addresses":                    "no addresses",
		"* [no address] refused":          "* [no address] refused",
	} {
		if got := dialFailure(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
