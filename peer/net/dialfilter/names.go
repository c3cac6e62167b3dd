package dialfilter

import (
	"context"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Resolver returns a resolver that uses inner only for host names that the owner has configured, and for the
// names to which these resolve. The resulting addresses count as configured for the peer.
func (f *Filter) Resolver(inner network.MultiaddrDNSResolver) network.MultiaddrDNSResolver {
	return resolver{inner, f}
}

type resolver struct {
	inner  network.MultiaddrDNSResolver
	filter *Filter
}

func (r resolver) ResolveDNSAddr(ctx context.Context, p p2ppeer.ID, a ma.Multiaddr, depth, most int) ([]ma.Multiaddr, error) {
	ids := r.filter.namedPeers(a)
	if !slices.Contains(ids, p) {
		return nil, nil
	}
	found, err := r.inner.ResolveDNSAddr(ctx, p, a, depth, most)
	r.filter.Name(p2ppeer.AddrInfo{ID: p, Addrs: found})
	return found, err
}

func (r resolver) ResolveDNSComponent(ctx context.Context, a ma.Multiaddr, most int) ([]ma.Multiaddr, error) {
	ids := r.filter.namedPeers(a)
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := r.inner.ResolveDNSComponent(ctx, a, most)
	for _, id := range ids {
		r.filter.Name(p2ppeer.AddrInfo{ID: id, Addrs: found})
	}
	return found, err
}

// namedPeers returns the peers for which the owner has configured the host name at the beginning of an address.
func (f *Filter) namedPeers(a ma.Multiaddr) []p2ppeer.ID {
	name, ok := nameOf(a)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names[name])
}

// nameOf returns the host name at the beginning of an address, if there is one.
func nameOf(a ma.Multiaddr) (string, bool) {
	if len(a) == 0 {
		return "", false
	}
	switch a[0].Protocol().Code {
	case ma.P_DNS, ma.P_DNS4, ma.P_DNS6, ma.P_DNSADDR:
		return a[0].Value(), true
	}
	return "", false
}
