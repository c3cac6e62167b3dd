package membership

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

const (
	bound   = 20 * time.Second // for each wait of a test; far above the usual duration
	overTCP = "/ip4/127.0.0.1/tcp/0"
	overUDP = "/ip4/127.0.0.1/udp/0/quic-v1"
	service = "/test/1.0.0"
)

// testHost is a peer with a service that sends hello.
type testHost struct {
	host.Host
	gate    *Gate
	members *Service
	log     logtest.Log
}

func newHost(t *testing.T, listen string, key crypto.PrivKey, i *Invitation, more ...libp2p.Option) *testHost {
	t.Helper()
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	h := new(testHost)
	// NewGate would return an error in tests in which a peer has another peer's token.
	h.gate = newGate(Config{Peer: id, Invitation: i, Home: key, Log: zerolog.New(zerolog.MultiLevelWriter(zerolog.NewTestWriter(t), &h.log))})
	options := append([]libp2p.Option{
		libp2p.Identity(key), libp2p.ListenAddrStrings(listen), libp2p.Transport(tcp.NewTCPTransport),
		libp2p.ResourceManager(&network.NullResourceManager{}),
	}, more...)
	if i == nil {
		options = append(options, libp2p.Transport(quic.NewTransport), libp2p.Security(libp2ptls.ID, libp2ptls.New))
	} else {
		options = append(options, libp2p.Transport(h.gate.QUIC), libp2p.ConnectionGater(h.gate))
	}
	options = append(options, libp2p.Security(SecurityID, h.gate.TLS))
	if h.Host, err = libp2p.New(options...); err != nil {
		t.Fatal(err)
	}
	h.members = New(h.Host, h.gate, func() (*Invitation, error) { return i, nil })
	t.Cleanup(func() {
		h.members.Close()
		h.Close()
	})
	h.SetStreamHandler(service, func(s network.Stream) {
		io.WriteString(s, "hello")
		s.Close()
	})
	return h
}

// greeted connects a to b and uses b's service.
func greeted(t *testing.T, a, b *testHost, addrs ...ma.Multiaddr) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if addrs == nil {
		addrs = b.Addrs()
	}
	if err := a.Connect(ctx, p2ppeer.AddrInfo{ID: b.ID(), Addrs: addrs}); err != nil {
		return err
	}
	s, err := a.NewStream(ctx, b.ID(), service)
	if err != nil {
		return err
	}
	defer s.Reset()
	s.SetDeadline(time.Now().Add(bound))
	text, err := io.ReadAll(s)
	if err == nil && string(text) != "hello" {
		t.Errorf("got %q, want hello", text)
	}
	return err
}

// await polls until ok returns true, at most for bound.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !ok(); time.Sleep(5 * time.Millisecond) { // interval between polls
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func apart(a, b *testHost) func() bool {
	return func() bool {
		return len(a.Network().ConnsToPeer(b.ID())) == 0 && len(b.Network().ConnsToPeer(a.ID())) == 0
	}
}

// TestMembersMeet uses tokens that are bound to a peer, and one that is not.
func TestMembersMeet(t *testing.T) {
	for _, listen := range []string{overTCP, overUDP} {
		owner, _ := newKey(t)
		aKey, a := newKey(t)
		bKey, _ := newKey(t)
		later := time.Now().Add(time.Hour)
		first := newHost(t, listen, aKey, invite(t, owner, "lab", a, later))
		second := newHost(t, listen, bKey, invite(t, owner, "lab", "", later))
		if err := greeted(t, first, second); err != nil {
			t.Errorf("listening at %s, the first member was not greeted by the second: %v", listen, err)
		}
		if err := greeted(t, second, first); err != nil {
			t.Errorf("listening at %s, the second member was not greeted by the first: %v", listen, err)
		}
	}
}

func TestNonMembersAreRefused(t *testing.T) {
	owner, _ := newKey(t)
	other, _ := newKey(t)
	memberKey, member := newKey(t)
	key, id := newKey(t)
	later := time.Now().Add(time.Hour)
	tests := map[string]struct {
		invitation *Invitation
		want       string // part of the error for the refused peer's user
	}{
		"without a token":            {nil, "belongs to a private network for which this peer has no token"},
		"expired":                    {invite(t, owner, "lab", id, time.Now().Add(-time.Second)), "has expired"},
		"of another owner":           {invite(t, other, "lab", id, later), "another owner"},
		"of another owner's network": {invite(t, other, "office", id, later), "another private network"},
		"bound to another":           {invite(t, owner, "lab", member, later), "no token"}, // the peer has no usable token
	}
	for name, test := range tests {
		for _, listen := range []string{overTCP, overUDP} {
			t.Run(name+listen, func(t *testing.T) {
				ours := newHost(t, listen, memberKey, invite(t, owner, "lab", member, later))
				theirs := newHost(t, listen, key, test.invitation)
				theirs.gate.cfg.Home = nil
				got := greeted(t, theirs, ours)
				if got == nil {
					t.Fatal("the peer was admitted")
				}
				await(t, "the peer knows the reason", func() bool { return theirs.gate.Refused() != nil })
				if r := theirs.gate.Refused(); !r.Theirs || r.Peer != ours.ID() || !strings.Contains(r.Error(), test.want) {
					t.Errorf("the peer was told %q, want %q", r, test.want)
				}
				await(t, "the peers are disconnected", apart(ours, theirs))
				if known, _ := ours.Peerstore().GetProtocols(theirs.ID()); len(known) > 0 {
					t.Errorf("the member has requested the peer's protocols: %v", known)
				}
				if known, _ := theirs.Peerstore().GetProtocols(ours.ID()); len(known) > 0 {
					t.Errorf("the member has revealed its protocols: %v", known)
				}
				await(t, "the refusal is recorded", func() bool { return ours.gate.recentlyRefused(theirs.ID()) })
				err := greeted(t, ours, theirs)
				if dial, ok := errors.AsType[*swarm.DialError](err); !ok || !errors.Is(dial.Cause, swarm.ErrGaterDisallowedConnection) {
					t.Errorf("the member dials the refused peer: got %v", err)
				}
			})
		}
	}
}

func TestNonMemberIsRefusedByItsDialler(t *testing.T) {
	owner, _ := newKey(t)
	other, _ := newKey(t)
	memberKey, member := newKey(t)
	key, _ := newKey(t)
	later := time.Now().Add(time.Hour)
	for name, invitation := range map[string]*Invitation{"open": nil, "other owner": invite(t, other, "lab", "", later)} {
		for _, listen := range []string{overTCP, overUDP} {
			t.Run(name+listen, func(t *testing.T) {
				ours := newHost(t, listen, memberKey, invite(t, owner, "lab", member, later))
				theirs := newHost(t, listen, key, invitation)
				if err := greeted(t, ours, theirs); err == nil {
					t.Error("the peer was admitted")
				}
				await(t, "the peers are disconnected", apart(ours, theirs))
				await(t, "the dialling peer knows the reason", func() bool { return ours.gate.Refused() != nil })
			})
		}
	}
}

func TestOpenPeersConnectWithoutTokens(t *testing.T) {
	for _, listen := range []string{overTCP, overUDP} {
		aKey, _ := newKey(t)
		bKey, _ := newKey(t)
		a, b := newHost(t, listen, aKey, nil), newHost(t, listen, bKey, nil)
		if err := greeted(t, a, b); err != nil {
			t.Errorf("listening at %s, the peer of an open network was not greeted: %v", listen, err)
		}
		if c := a.Network().ConnsToPeer(b.ID())[0].ConnState(); c.Security == SecurityID {
			t.Error("the peers of an open network used the transport of private networks")
		}
	}
}

// TestRelayedConnectionsAreChecked checks that proofs are exchanged on circuits too. A peer whose token has
// expired since it connected to a relay cannot reach another peer through that relay.
func TestRelayedConnectionsAreChecked(t *testing.T) {
	owner, _ := newKey(t)
	later := time.Now().Add(time.Hour)
	host := func(i *Invitation, listen string, more ...libp2p.Option) *testHost {
		key, _ := newKey(t)
		return newHost(t, listen, key, i, append(more, libp2p.EnableRelay())...)
	}
	relay := host(invite(t, owner, "lab", "", later), overTCP, libp2p.EnableRelayService(), libp2p.ForceReachabilityPublic())
	hidden := host(invite(t, owner, "lab", "", later), "/p2p-circuit")
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	at := p2ppeer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}
	if _, err := client.Reserve(ctx, hidden, at); err != nil {
		t.Fatal(err)
	}
	through := relay.Addrs()[0].Encapsulate(ma.StringCast("/p2p/" + relay.ID().String() + "/p2p-circuit"))
	member := host(invite(t, owner, "lab", "", later), overTCP)
	meet := func(h *testHost) error {
		ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(t.Context(), "test"), bound)
		defer cancel()
		return h.Connect(ctx, p2ppeer.AddrInfo{ID: hidden.ID(), Addrs: []ma.Multiaddr{through}})
	}
	if err := meet(member); err != nil {
		t.Errorf("a member was refused: %v", err)
	}
	guest := host(invite(t, owner, "lab", "", later), overTCP)
	if err := guest.Connect(ctx, at); err != nil {
		t.Fatal(err)
	}
	guest.gate.invitation = invite(t, owner, "lab", "", time.Now().Add(-time.Second)) // from now on
	if err := meet(guest); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("a peer with an expired token: got %v, want that it has expired", err)
	}
	if !apart(guest, hidden)() {
		t.Error("the peer with the expired token is connected")
	}
}

func TestConnectionEndsWhenTheTokenExpires(t *testing.T) {
	skip.Long(t)
	owner, _ := newKey(t)
	aKey, _ := newKey(t)
	bKey, _ := newKey(t)
	a := newHost(t, overTCP, aKey, invite(t, owner, "lab", "", time.Now().Add(time.Hour)))
	b := newHost(t, overTCP, bKey, invite(t, owner, "lab", "", time.Now().Add(time.Hour)))
	if err := greeted(t, b, a); err != nil {
		t.Fatal(err)
	}
	a.gate.mu.Lock()
	a.gate.register.admit(b.ID(), Token{Expires: time.Now()}, time.Now()) // as if b's token had expired
	a.gate.mu.Unlock()
	await(t, "the peers are disconnected", apart(a, b))
}

func TestRenewedTokenKeepsTheConnection(t *testing.T) {
	owner, _ := newKey(t)
	aKey, _ := newKey(t)
	bKey, _ := newKey(t)
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	a := newHost(t, overTCP, aKey, invite(t, owner, "lab", "", later))
	b := newHost(t, overTCP, bKey, invite(t, owner, "lab", "", later))
	if err := greeted(t, b, a); err != nil {
		t.Fatal(err)
	}
	conn := b.Network().ConnsToPeer(a.ID())[0]
	renewed := invite(t, owner, "lab", "", later.Add(time.Hour))
	if !b.gate.renew(renewed) || b.gate.renew(invite(t, owner, "lab", "", later)) {
		t.Fatal("want the newer invitation accepted, and the older one rejected")
	}
	b.members.show()
	await(t, "the other peer has recorded the renewed token", func() bool {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		return a.gate.register.admitted[b.ID()].until.Equal(renewed.Expires)
	})
	if conn.IsClosed() {
		t.Error("the connection is closed")
	}
}

func TestNewcomersAreBounded(t *testing.T) {
	owner, _ := newKey(t)
	key, id := newKey(t)
	h := newHost(t, overTCP, key, invite(t, owner, "lab", id, time.Now().Add(time.Hour)))
	var leave []func()
	for range maxExchanges {
		l, err := h.gate.enter("somebody", network.DirInbound)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	guestKey, _ := newKey(t)
	guest := newHost(t, overTCP, guestKey, invite(t, owner, "lab", "", time.Now().Add(time.Hour)))
	if err := greeted(t, guest, h); err == nil {
		t.Error("more peers than allowed exchange proofs")
	}
	if err := greeted(t, h, guest); err != nil {
		t.Errorf("this peer cannot dial: %v", err)
	}
	for _, c := range h.Network().Conns() {
		c.Close()
	}
	leave[0]()
	await(t, "the guest is admitted after an exchange has ended", func() bool { return greeted(t, guest, h) == nil })
}

// TestEmptyTokensDoNotAffectAnOpenNetwork makes a stranger show an empty token repeatedly.
func TestEmptyTokensDoNotAffectAnOpenNetwork(t *testing.T) {
	key, _ := newKey(t)
	strangerKey, strangerID := newKey(t)
	h := newHost(t, overTCP, key, nil)
	stranger := newHost(t, overTCP, strangerKey, nil)
	if err := greeted(t, stranger, h); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		s, err := stranger.NewStream(t.Context(), h.ID(), streamProtocol)
		if err != nil {
			t.Fatal(err)
		}
		s.SetDeadline(time.Now().Add(bound))
		if _, err := s.Write([]byte{0, 0}); err != nil {
			t.Fatal(err)
		}
		if _, err := readMessage(s); err != nil { // the answer: h has handled the token
			t.Fatal(err)
		}
		s.Reset()
	}
	if r := h.gate.Refused(); r != nil {
		t.Errorf("an empty token was recorded as a refusal: %v", r)
	}
	if n := strings.Count(h.log.String(), strangerID.String()); n == 0 || n > 4 {
		t.Errorf("the log names the stranger %d times, want 1 to 4:\n%s", n, h.log.String())
	}
}

func TestStallingPeerIsRefusedForAWhile(t *testing.T) {
	owner, _ := newKey(t)
	_, id := newKey(t)
	g := newGate(Config{Peer: id, Invitation: invite(t, owner, "lab", id, time.Now().Add(time.Hour)), Log: zerolog.Nop()})
	g.register.admit("member", Token{Expires: time.Now().Add(time.Hour)}, time.Now())
	for peer, dir := range map[p2ppeer.ID]network.Direction{"caller": network.DirInbound, "member": network.DirInbound, "called": network.DirOutbound} {
		g.ended(peer, dir, os.ErrDeadlineExceeded)
		if got, want := g.recentlyRefused(peer), peer == "caller"; got != want {
			t.Errorf("%s: refused %t, want %t", peer, got, want)
		}
	}
	g.ended("dialled twice", network.DirInbound, io.ErrUnexpectedEOF)
	if g.recentlyRefused("dialled twice") {
		t.Error("a peer that hung up counts as refused")
	}
}

func TestGateDoesNotTrustTransports(t *testing.T) {
	owner, _ := newKey(t)
	key, id := newKey(t)
	g, err := NewGate(Config{Peer: id, Invitation: invite(t, owner, "lab", id, time.Now().Add(time.Hour)), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	// TCP with TLS alone, as if a transport had been added without the exchange of proofs.
	ours, err := libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings(overTCP), libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Security(libp2ptls.ID, libp2ptls.New), libp2p.ConnectionGater(g))
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	guestKey, _ := newKey(t)
	guest := newHost(t, overTCP, guestKey, nil)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	guest.Connect(ctx, p2ppeer.AddrInfo{ID: ours.ID(), Addrs: ours.Addrs()})
	await(t, "the guest is disconnected", func() bool { return guest.Network().Connectedness(ours.ID()) == network.NotConnected })
	if len(ours.Network().Conns()) > 0 {
		t.Error("the guest is connected")
	}
}
