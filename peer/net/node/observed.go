package node

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
)

// Kinds of address translation.
const (
	IndependentNAT = "endpoint-independent" // one port for all destinations
	SymmetricNAT   = "symmetric"            // another port for each destination
	NoNAT          = "none"                 // others observe the machine's own public address
)

// observedAddrs holds the address at which the remote peer of each open outbound connection observes this
// peer. Its methods are safe for concurrent use.
type observedAddrs struct {
	mu   sync.Mutex
	seen map[network.Conn]ma.Multiaddr
}

// note records the address that a remote peer has observed. It ignores inbound connections, on which the remote
// peer observes the address that it has dialled. That address shows nothing about the router.
func (s *observedAddrs) note(e event.EvtPeerIdentificationCompleted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetClosed()
	if e.ObservedAddr == nil || e.Conn == nil || e.Conn.IsClosed() || e.Conn.Stat().Direction != network.DirOutbound {
		return
	}
	if s.seen == nil {
		s.seen = make(map[network.Conn]ma.Multiaddr)
	}
	s.seen[e.Conn] = e.ObservedAddr
}

// forgetClosed removes closed connections, which bounds s.seen by the number of open ones. s.mu is held.
func (s *observedAddrs) forgetClosed() {
	for c := range s.seen {
		if c.IsClosed() {
			delete(s.seen, c)
		}
	}
}

// all returns the observations on all open connections.
func (s *observedAddrs) all() (all []observedAddr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetClosed()
	for c, observed := range s.seen {
		if one, ok := newObservedAddr(c, observed); ok {
			all = append(all, one)
		}
	}
	return all
}

// An observedAddr is the address at which one observer sees a socket of this peer.
type observedAddr struct {
	transport string // tcp or udp
	local     netip.AddrPort
	observer  netip.Addr
	seen      netip.AddrPort
}

// newObservedAddr converts an observation on a connection. It returns false for a circuit, where the observer
// sees the relay's address.
func newObservedAddr(c network.Conn, observed ma.Multiaddr) (s observedAddr, ok bool) {
	if connection.IsCircuit(c.RemoteMultiaddr()) {
		return s, false
	}
	transport, local, localOK := socket(c.LocalMultiaddr())
	_, remote, remoteOK := socket(c.RemoteMultiaddr())
	also, seen, seenOK := socket(observed)
	return observedAddr{transport, local, remote.Addr(), seen}, localOK && remoteOK && seenOK && also == transport
}

// socket returns the transport, IP address and port at the beginning of a.
func socket(a ma.Multiaddr) (transport string, at netip.AddrPort, ok bool) {
	n, err := manet.ToNetAddr(a)
	if err != nil {
		return "", at, false
	}
	switch n := n.(type) {
	case *net.TCPAddr:
		transport, at = "tcp", n.AddrPort()
	case *net.UDPAddr:
		transport, at = "udp", n.AddrPort()
	}
	return transport, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), at.IsValid()
}

// natKinds returns the kind of address translation for each transport for which it is known. own are the
// addresses of this machine.
//
// If an observer sees an address of this machine, there is no router between the two. If that address is public,
// this machine is not behind a router. The other observers are compared for each socket. If two observers at
// different addresses see the same address, the translation is endpoint-independent. If all observers see
// different addresses, the translation is symmetric.
func natKinds(all []observedAddr, own []netip.Addr) map[string]string {
	type from struct {
		transport string
		local     netip.AddrPort
	}
	views := make(map[from]map[netip.Addr]netip.AddrPort)
	direct := make(map[string]bool) // transports over which an observer sees a public address of this machine
	for _, s := range all {
		if at := s.seen.Addr(); slices.Contains(own, at) {
			if IsPublic(at) {
				direct[s.transport] = true
			}
			continue
		}
		f := from{s.transport, s.local}
		if views[f] == nil {
			views[f] = make(map[netip.Addr]netip.AddrPort)
		}
		views[f][s.observer] = s.seen
	}
	kinds := make(map[string]string)
	for f, view := range views {
		if len(view) < observers {
			continue
		}
		distinct := make(map[netip.AddrPort]bool)
		for _, seen := range view {
			distinct[seen] = true
		}
		switch {
		case len(distinct) < len(view):
			kinds[f.transport] = IndependentNAT
		case kinds[f.transport] == "":
			kinds[f.transport] = SymmetricNAT
		}
	}
	for transport := range direct {
		if kinds[transport] == "" {
			kinds[transport] = NoNAT
		}
	}
	return kinds
}

// IsPublic reports whether machines in other networks may reach an address.
func IsPublic(a netip.Addr) bool { return a.IsGlobalUnicast() && !dialfilter.IsPrivate(a) }
