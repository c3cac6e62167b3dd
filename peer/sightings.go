package peer

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Kinds of address translation.
const (
	independentNAT = "endpoint-independent" // one port for all destinations
	symmetricNAT   = "symmetric"            // another port for each destination
	noNAT          = "none"                 // the machine's own public address is seen
)

// sightings are under which addresses others see this peer, on the connections that it has
// made and that are open. They are safe for concurrent use.
type sightings struct {
	mu   sync.Mutex
	seen map[network.Conn]ma.Multiaddr
}

// note takes in what a peer has said. Whoever connects to this one sees the address that it has
// dialled, which says nothing about the router.
func (s *sightings) note(e event.EvtPeerIdentificationCompleted) {
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

// forgetClosed bounds them by the connections that a peer may have. mu is held.
func (s *sightings) forgetClosed() {
	for c := range s.seen {
		if c.IsClosed() {
			delete(s.seen, c)
		}
	}
}

// all returns them as they are now.
func (s *sightings) all() (all []sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetClosed()
	for c, observed := range s.seen {
		if one, ok := newSighting(c, observed); ok {
			all = append(all, one)
		}
	}
	return all
}

// A sighting is the address under which one observer sees a socket of this peer.
type sighting struct {
	transport string // tcp or udp
	local     netip.AddrPort
	observer  netip.Addr
	seen      netip.AddrPort
}

// newSighting fails for a connection through a relay: the relay's address is seen then.
func newSighting(c network.Conn, observed ma.Multiaddr) (s sighting, ok bool) {
	if isRelayed(c.RemoteMultiaddr()) {
		return s, false
	}
	transport, local, localOK := socket(c.LocalMultiaddr())
	_, remote, remoteOK := socket(c.RemoteMultiaddr())
	also, seen, seenOK := socket(observed)
	return sighting{transport, local, remote.Addr(), seen}, localOK && remoteOK && seenOK && also == transport
}

// socket returns what a begins with: an IP address and a port of tcp or udp.
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

// natKinds returns the kind of translation of each transport of which it is known, from the
// sightings by others of a machine that has its own addresses. An observer that sees one of those
// is on this side of the router or, if that address is public, there is no router. Of the other
// observers, if two at different addresses see one socket as the same, the router keeps ports; if
// each sees another, it is symmetric.
func natKinds(all []sighting, own []netip.Addr) map[string]string {
	type from struct {
		transport string
		local     netip.AddrPort
	}
	views := make(map[from]map[netip.Addr]netip.AddrPort)
	direct := make(map[string]bool) // transports by which an own public address was seen
	for _, s := range all {
		if at := s.seen.Addr(); slices.Contains(own, at) {
			if isPublic(at) {
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
			kinds[f.transport] = independentNAT
		case kinds[f.transport] == "":
			kinds[f.transport] = symmetricNAT
		}
	}
	for transport := range direct {
		if kinds[transport] == "" {
			kinds[transport] = noNAT
		}
	}
	return kinds
}
