package dialfilter

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

const (
	remembered = 24 * time.Hour // time for which a place is remembered after the last contact
	maxPeers   = 4096           // peers that were met nearby
	maxPlaces  = 16             // places of one peer
	ownFor     = time.Second    // time for which this machine's addresses are cached
)

// A Filter is the dial filter of one peer. Use New to create one. Its methods are safe for concurrent use.
type Filter struct {
	addresses func() ([]net.Addr, error) // addresses of this machine

	mu       sync.Mutex
	met      map[p2ppeer.ID]*places
	names    map[string][]p2ppeer.ID // peers by configured host name
	farthest distance                // greatest distance of all peers met since the start
	own      []netip.Prefix          // addresses of this machine, each with its network
	ownAt    time.Time               // time when own was determined
}

// New returns the filter of a peer that has not met any other peer.
func New() *Filter {
	return &Filter{addresses: net.InterfaceAddrs, met: make(map[p2ppeer.ID]*places), names: make(map[string][]p2ppeer.ID)}
}

// places are the nearby addresses at which a peer was met, and its configured addresses.
type places struct {
	at    map[netip.Addr]time.Time // last contact at each address
	named []netip.Addr             // configured by the owner; never forgotten
	last  time.Time
}

// A distance classifies an address at which a peer was met.
type distance int

const (
	none distance = iota
	here          // on this machine
	near          // at a private address
	far           // at a public address
)

// Name records a peer that the owner has configured, with its addresses.
func (f *Filter) Name(info p2ppeer.AddrInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range info.Addrs {
		id := info.ID
		if relay := connected.RelayOf(a); relay != "" {
			id = relay
		}
		if ip, ok := ipOf(a); ok {
			f.addAddress(id, ip)
		} else if name, ok := nameOf(a); ok {
			f.addName(id, name)
		}
	}
}

// Neighbour records a peer that mDNS has reported. It ignores circuits, loopback addresses, and addresses
// outside of the networks of this machine.
func (f *Filter) Neighbour(info p2ppeer.AddrInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.ownNetworks()
	for _, a := range info.Addrs {
		ip, ok := ipOf(a)
		if ok && !connection.IsCircuit(a) && !ip.IsLoopback() && slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			f.note(info.ID, ip)
		}
	}
}

// Met records that a peer is connected, or was until now.
func (f *Filter) Met(c network.Conn) {
	ip, ok := ipOf(c.RemoteMultiaddr())
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.distanceOf(ip)
	f.farthest = max(f.farthest, d)
	if d != far && !connection.IsCircuit(c.RemoteMultiaddr()) {
		f.note(c.RemotePeer(), ip)
	}
}

// MayDial is like May for a multiaddr. It permits all circuits, since libp2p dials their relays separately.
func (f *Filter) MayDial(peer p2ppeer.ID, at ma.Multiaddr) bool {
	if connection.IsCircuit(at) {
		return true
	}
	ip, ok := ipOf(at)
	return ok && f.May(peer, ip)
}

// May reports whether this peer may dial another peer at an address that any peer has named.
func (f *Filter) May(peer p2ppeer.ID, at netip.Addr) bool {
	at = plain(at)
	f.mu.Lock()
	defer f.mu.Unlock()
	met := f.metAt(peer)
	within := func(most distance) bool { // reports whether the peer was met at that distance or nearer
		return slices.ContainsFunc(met, func(a netip.Addr) bool { return f.distanceOf(a) <= most })
	}
	switch {
	case slices.Contains(met, at):
		return true
	case at.IsLoopback():
		return f.farthest <= here
	case !at.IsGlobalUnicast():
		return false
	case f.distanceOf(at) == here:
		return within(here) || f.farthest <= here || IsPrivate(at) && len(met) == 0 && f.farthest <= near
	case IsPrivate(at):
		return within(near) || f.farthest <= near
	}
	return true
}

// addAddress records an address of a peer that the owner has configured. f.mu is held, as in the functions
// below.
func (f *Filter) addAddress(peer p2ppeer.ID, at netip.Addr) {
	if p := f.placesOf(peer); !slices.Contains(p.named, at) {
		p.named = append(p.named, at)
	}
}

func (f *Filter) addName(peer p2ppeer.ID, name string) {
	if !slices.Contains(f.names[name], peer) {
		f.names[name] = append(f.names[name], peer)
	}
}

// metAt returns the addresses at which a peer was met, and its configured addresses.
func (f *Filter) metAt(peer p2ppeer.ID) []netip.Addr {
	p := f.met[peer]
	if p == nil {
		return nil
	}
	out := slices.Clone(p.named)
	for a, last := range p.at {
		if time.Since(last) < remembered {
			out = append(out, a)
		}
	}
	return out
}

// note records that a peer was met at an address.
func (f *Filter) note(peer p2ppeer.ID, at netip.Addr) {
	p := f.placesOf(peer)
	if _, known := p.at[at]; !known && len(p.at) >= maxPlaces {
		oldest := at
		for a, last := range p.at {
			if oldest == at || last.Before(p.at[oldest]) {
				oldest = a
			}
		}
		delete(p.at, oldest)
	}
	p.last = time.Now()
	p.at[at] = p.last
}

// placesOf returns the places of a peer, and creates them if necessary. If there are too many peers, it removes
// the peer whose last contact was the longest time ago.
func (f *Filter) placesOf(peer p2ppeer.ID) *places {
	if p := f.met[peer]; p != nil {
		return p
	}
	if len(f.met) >= maxPeers {
		var oldest p2ppeer.ID
		for id, p := range f.met {
			if len(p.named) == 0 && (oldest == "" || p.last.Before(f.met[oldest].last)) {
				oldest = id
			}
		}
		delete(f.met, oldest)
	}
	p := &places{at: make(map[netip.Addr]time.Time)}
	f.met[peer] = p
	return p
}

func (f *Filter) distanceOf(a netip.Addr) distance {
	switch {
	case a.IsLoopback() || slices.ContainsFunc(f.ownNetworks(), func(p netip.Prefix) bool { return p.Addr() == a }):
		return here
	case IsPrivate(a) || a.IsLinkLocalUnicast():
		return near
	}
	return far
}

func (f *Filter) ownNetworks() []netip.Prefix {
	if !f.ownAt.IsZero() && time.Since(f.ownAt) < ownFor {
		return f.own
	}
	all, err := f.addresses()
	if err != nil {
		return f.own
	}
	f.own, f.ownAt = nil, time.Now()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			f.own = append(f.own, netip.PrefixFrom(plain(p.Addr()), p.Bits()))
		}
	}
	return f.own
}

// carrierNAT is the address space that providers share among their customers (RFC 6598).
var carrierNAT = netip.MustParsePrefix("100.64.0.0/10")

// IsPrivate reports whether an address belongs to a network behind a router.
func IsPrivate(a netip.Addr) bool { return a.IsPrivate() || carrierNAT.Contains(a) }

// plain returns an address without its zone. It converts an IPv4-mapped address to IPv4.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// ipOf returns the IP address at the beginning of a multiaddr, which is the relay's address in a circuit.
func ipOf(a ma.Multiaddr) (netip.Addr, bool) {
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	at, ok := netip.AddrFromSlice(ip)
	return plain(at), ok
}
