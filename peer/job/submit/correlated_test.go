package submit

import (
	"strings"
	"testing"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestWarningNamesSharedFailureDomains: the warning names only what all replicas of a rank share.
func TestWarningNamesSharedFailureDomains(t *testing.T) {
	const relay, another = "12D3KooWrrrrrrrr", "12D3KooWssssssss"
	at := func(d reservation.Domain, relay string, ranks ...int) Planned {
		p := Planned{Domain: d, Relay: relay}
		for _, rank := range ranks {
			p.Processes = append(p.Processes, view.Process{Rank: rank})
		}
		return p
	}
	seen := func(addresses ...string) reservation.Domain { return reservation.Domain{Addresses: addresses} }
	owned := func(name string, verified bool) reservation.Domain {
		return reservation.Domain{Owner: name, Verified: verified}
	}
	const begin = "one failure may stop all replicas of a rank: "
	tests := []struct {
		name    string
		n, r    int
		planned []Planned
		want    string
	}{
		{"nothing in common", 1, 2, []Planned{at(seen("192.0.2.1"), "", 0), at(seen("192.0.2.2"), "", 0)}, ""},
		{"nothing known", 1, 2, []Planned{at(seen(), "", 0), at(seen(), "", 0)}, ""},
		{"no replicas", 2, 1, []Planned{at(owned("alice", true), relay, 0), at(owned("alice", true), relay, 1)}, ""},
		{"one relay", 2, 2, []Planned{at(seen(), relay, 0, 1), at(seen(), relay, 0), at(seen(), another, 1)}, begin + "rank 0 is behind one relay (…rrrrrrrr)"},
		{"one reached directly", 1, 2, []Planned{at(seen(), relay, 0), at(seen(), "", 0)}, ""},
		{"one of three elsewhere", 1, 3, []Planned{at(seen(), relay, 0), at(seen(), relay, 0), at(seen(), another, 0)}, ""},
		{"one public address", 2, 2, []Planned{at(seen("192.0.2.1"), "", 0, 1), at(seen("192.0.2.1", "2001:db8::/64"), "", 0, 1)}, begin + "all 2 ranks are at one public address (192.0.2.1)"},
		{"one network of IPv6", 1, 2, []Planned{at(seen("2001:db8::/64"), "", 0), at(seen("2001:db8::/64"), "", 0)}, begin + "rank 0 is at one public address (2001:db8::/64)"},
		{"an address that one peer only claims", 1, 2, []Planned{at(seen("192.0.2.1"), "", 0), at(reservation.Domain{Said: "192.0.2.1"}, "", 0)}, begin + "rank 0 is at one public address (192.0.2.1)"},
		{"private addresses and this machine's", 1, 2, []Planned{at(seen("192.168.1.5", "127.0.0.1"), "", 0), at(seen("192.168.1.5", "127.0.0.1"), "", 0)}, ""},
		{"one owner", 4, 2, []Planned{at(owned("alice", true), "", 0, 1, 2), at(owned("alice", true), "", 0, 1, 3), at(owned("bob", true), "", 2, 3)}, begin + "ranks 0 and 1 are on machines of one owner (alice)"},
		{"one owner, by their own account", 1, 2, []Planned{at(owned("alice", false), "", 0), at(owned("alice", false), "", 0)}, begin + "rank 0 is on machines of one owner (alice, by their own account)"},
		{"two owners with two ranks each", 5, 2, []Planned{
			at(owned("alice", true), "", 0, 1), at(owned("alice", true), "", 0, 1), at(owned("bob", true), "", 2, 3, 4), at(owned("bob", true), "", 2, 3), at(owned("eve", true), "", 4),
		}, begin + "4 ranks are on machines of one owner each"},
		{"two causes", 1, 2, []Planned{at(owned("alice", true), relay, 0), at(owned("alice", true), relay, 0)}, begin + "rank 0 is behind one relay (…rrrrrrrr); rank 0 is on machines of one owner (alice)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := correlated(tt.planned, tt.n, tt.r); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestOnlyRelay(t *testing.T) {
	const (
		direct  = "/ip4/192.0.2.1/tcp/4001"
		relay   = "12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo"
		another = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
	)
	through := func(id string) string { return "/ip4/192.0.2.9/tcp/4001/p2p/" + id + "/p2p-circuit" }
	for _, tt := range []struct{ name, from, want string }{
		{"no connection", "", ""},
		{"directly", direct, ""},
		{"through a relay", through(relay), relay},
		{"twice through a relay", through(relay) + " " + through(relay), relay},
		{"through two relays", through(relay) + " " + through(another), ""},
		{"through a relay and directly", through(relay) + " " + direct, ""},
	} {
		var from []ma.Multiaddr
		for _, text := range strings.Fields(tt.from) {
			a, err := ma.NewMultiaddr(text)
			if err != nil {
				t.Fatal(err)
			}
			from = append(from, a)
		}
		if got := onlyRelay(from); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
