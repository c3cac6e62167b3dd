package dialfilter

import (
	"context"
	"net/netip"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// A book is a resolver that knows a fixed set of names and counts the requests.
type book struct {
	leads map[string]string
	asked int
}

func (b *book) look(a ma.Multiaddr) []ma.Multiaddr {
	b.asked++
	return []ma.Multiaddr{ma.StringCast(b.leads[a.String()])}
}

func (b *book) ResolveDNSAddr(_ context.Context, _ p2ppeer.ID, a ma.Multiaddr, _, _ int) ([]ma.Multiaddr, error) {
	return b.look(a), nil
}

func (b *book) ResolveDNSComponent(_ context.Context, a ma.Multiaddr, _ int) ([]ma.Multiaddr, error) {
	return b.look(a), nil
}

func TestOnlyTheOwnersHostNamesAreResolved(t *testing.T) {
	const entry, name = "/dnsaddr/lab.example", "/dns4/node.lab.example/tcp/1"
	b := &book{leads: map[string]string{entry: name, name: "/ip4/10.1.2.3/tcp/1"}}
	f := newFilter()
	f.meets(third, ip("192.0.2.7"))
	look := f.Resolver(b)
	ask := func(id p2ppeer.ID) (out []ma.Multiaddr) {
		found, _ := look.ResolveDNSAddr(t.Context(), id, ma.StringCast(entry), 4, 4)
		last, _ := look.ResolveDNSComponent(t.Context(), ma.StringCast(name), 4)
		return append(found, last...)
	}
	if got := ask(other); len(got) > 0 || b.asked > 0 {
		t.Errorf("names of other peers: got %v after %d lookups, want none", got, b.asked)
	}
	f.Name(info(other, entry))
	if got := ask(third); len(got) > 0 || b.asked > 0 {
		t.Errorf("name of another peer: got %v after %d lookups, want none", got, b.asked)
	}
	if got := ask(other); len(got) != 2 || b.asked != 2 {
		t.Errorf("the owner's names: got %v after %d lookups, want 2", got, b.asked)
	}
	at := netip.MustParseAddr("10.1.2.3")
	if !f.May(other, at) || f.May(third, at) {
		t.Error("an address resolved from a name must be allowed only for the peer of that name")
	}
}
