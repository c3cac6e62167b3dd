package dialfilter

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

const (
	other = p2ppeer.ID("other")
	third = p2ppeer.ID("third")

	circuit = "/tcp/1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf/p2p-circuit"
)

// newFilter returns the filter of a machine with fixed addresses.
func newFilter() *Filter {
	f := New()
	f.addresses = func() (all []net.Addr, err error) {
		for _, s := range []string{"127.0.0.1/8", "172.16.5.5/24", "203.0.113.5/32", "::1/128", "fe80::5/64"} {
			ip, network, err := net.ParseCIDR(s)
			if err != nil {
				return nil, err
			}
			all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		return all, nil
	}
	return f
}

// A conn is a simulated connection to a peer at an address.
type conn struct {
	network.Conn
	peer p2ppeer.ID
	at   string
}

func (c conn) RemotePeer() p2ppeer.ID            { return c.peer }
func (c conn) RemoteMultiaddr() ma.Multiaddr     { return ma.StringCast(c.at) }
func (f *Filter) meets(id p2ppeer.ID, at string) { f.Met(conn{peer: id, at: at}) }

func ip(at string) string {
	if a := netip.MustParseAddr(at); a.Is6() {
		return "/ip6/" + at + "/tcp/1"
	}
	return "/ip4/" + at + "/tcp/1"
}

// TestAddressesNamedByStrangers checks which of the addresses that strangers name are dialled. This machine can
// reach services that strangers cannot reach: those on this machine and in its local network.
func TestAddressesNamedByStrangers(t *testing.T) {
	const public = "192.0.2.7"
	for _, c := range []struct {
		name  string
		met   string // where the peer itself was met; empty if it was not
		third string // where another peer was met
		may   bool
	}{
		{"127.0.0.1", "", public, false},
		{"127.0.0.1", "", "10.1.2.3", false},
		{"127.0.0.1", "", "127.0.0.1", true},
		{"127.0.0.1", "", "203.0.113.5", true}, // all peers are on this machine
		{"127.0.0.1", "", "", true},            // no other peer was met
		{"127.0.0.1", "10.1.2.3", public, false},
		{"127.0.0.2", "127.0.0.1", public, false},
		{"127.0.0.1", "127.0.0.1", public, true},
		{"::ffff:127.0.0.1", "", public, false},
		{"::1", "", public, false},
		{"203.0.113.5", "", public, false}, // an address of this machine
		{"203.0.113.5", "", "10.1.2.3", false},
		{"203.0.113.5", "192.168.1.2", public, false},
		{"203.0.113.5", "127.0.0.1", public, true},
		{"172.16.5.5", "", public, false},
		{"172.16.5.5", "", "10.1.2.3", true}, // two peers of a laboratory on one machine
		{"172.16.5.5", "172.16.5.6", "", false},
		{"172.16.5.5", "203.0.113.5", public, true}, // the peer is on this machine
		{"172.16.5.7", "", public, false},           // next to this machine, according to a stranger
		{"172.16.5.7", "172.16.5.7", public, true},
		{"10.1.2.3", "", public, false},
		{"10.1.2.3", "", "/ip4/192.0.2.7" + circuit, false},
		{"10.1.2.3", "", "/ip4/10.0.0.1" + circuit, true},
		{"10.1.2.3", "", "10.9.9.9", true},           // all peers were met in private networks
		{"10.1.2.3", "192.168.1.2", public, true},    // another of their networks
		{"10.1.2.3", "127.0.0.1", public, true},      //
		{"100.64.0.1", "", public, false},            //
		{"fd00::1", "", public, false},               //
		{"169.254.169.254", "", public, false},       //
		{"169.254.169.254", "", "10.1.2.3", false},   //
		{"169.254.1.1", "169.254.1.1", public, true}, //
		{"fe80::1", "fe80::2", "", false},
		{"0.0.0.0", "", "127.0.0.1", false},
		{"224.0.0.1", "", "10.1.2.3", false},
		{public, "", "", true},
		{"2001:db8::1", "", public, true},
	} {
		f := newFilter()
		if c.met != "" {
			f.meets(other, ip(c.met))
		}
		switch {
		case c.third == "":
		case c.third[0] == '/':
			f.meets(third, c.third)
		default:
			f.meets(third, ip(c.third))
		}
		if got := f.May(other, netip.MustParseAddr(c.name)); got != c.may {
			t.Errorf("May(%s) for a peer met at %q, with a third peer at %q: got %v, want %v", c.name, c.met, c.third, got, c.may)
		}
	}
}

func info(id p2ppeer.ID, addrs ...string) p2ppeer.AddrInfo {
	out := p2ppeer.AddrInfo{ID: id}
	for _, a := range addrs {
		out.Addrs = append(out.Addrs, ma.StringCast(a))
	}
	return out
}

func TestAddressesNamedByOwnerAndLocalNetwork(t *testing.T) {
	f := newFilter()
	f.meets(third, ip("192.0.2.7"))
	f.Name(info("supernode", ip("127.0.0.1")))
	f.Neighbour(info("neighbour", ip("172.16.5.9"), ip("10.1.2.3"), ip("127.0.0.1"), "/ip4/172.16.5.8"+circuit))
	for _, c := range []struct {
		peer p2ppeer.ID
		name string
		may  bool
	}{
		{"supernode", "127.0.0.1", true},
		{other, "127.0.0.1", false},
		{"neighbour", "172.16.5.9", true},
		{"neighbour", "127.0.0.1", false},
		{"neighbour", "172.16.5.5", false},
		{other, "172.16.5.9", false},
	} {
		if got := f.May(c.peer, netip.MustParseAddr(c.name)); got != c.may {
			t.Errorf("May(%s, %s): got %v, want %v", c.peer, c.name, got, c.may)
		}
	}
}

func TestKnownAddressesExpire(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		f := newFilter()
		f.meets(third, ip("192.0.2.7"))
		f.meets(other, ip("10.1.2.3"))
		f.Name(info("supernode", ip("10.0.0.1")))
		at := netip.MustParseAddr("10.1.2.3")
		time.Sleep(remembered - time.Nanosecond)
		if !f.May(other, at) {
			t.Error("an address was forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		if f.May(other, at) {
			t.Error("an address was not forgotten")
		}
		for i := range 2 * maxPeers {
			f.meets(p2ppeer.ID(fmt.Sprint(i)), ip("10.1.2.3"))
		}
		for i := range 2 * maxPlaces {
			f.meets("last", ip(fmt.Sprintf("10.1.3.%d", i)))
		}
		if n, places := len(f.met), len(f.met["last"].at); n != maxPeers || places != maxPlaces {
			t.Errorf("got %d peers, and %d places of one peer; want %d and %d", n, places, maxPeers, maxPlaces)
		}
		if !f.May("supernode", netip.MustParseAddr("10.0.0.1")) {
			t.Error("the owner's address was forgotten")
		}
	})
}
