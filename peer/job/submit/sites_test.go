package submit

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

func TestSitesShareANameOrAddress(t *testing.T) {
	at := func(site string, addresses ...string) reservation.Domain {
		return reservation.Domain{Site: site, Addresses: addresses}
	}
	tests := []struct {
		name    string
		domains []reservation.Domain
		want    []int
	}{
		{"unknown", []reservation.Domain{at(""), at(""), at("")}, []int{0, 1, 2}},
		{"named", []reservation.Domain{at("a"), at("b"), at("a"), at("b")}, []int{0, 1, 0, 1}},
		{"behind one router", []reservation.Domain{at("", "192.0.2.1"), at("", "192.0.2.2"), at("", "192.0.2.1")}, []int{0, 1, 0}},
		{"either", []reservation.Domain{at("a", "192.0.2.1"), at("b"), at("", "192.0.2.1"), at("a"), at("b", "192.0.2.2")}, []int{0, 1, 0, 0, 1}},
		{"joined by the last", []reservation.Domain{at("a"), at("", "192.0.2.1"), at("b"), at("a", "192.0.2.1")}, []int{1, 1, 2, 1}},
		{"a site is not an address", []reservation.Domain{at("192.0.2.1"), at("", "192.0.2.1")}, []int{0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sitesOf(tt.domains); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestPeersOfASiteShareMutually: all peers of a site of up to 17 share mutually, and none with
// more peers than a peer accepts.
func TestPeersOfASiteShareMutually(t *testing.T) {
	for _, n := range []int{1, 2, 6, 17, 18, 60, 300, 1 << 10} {
		sites := make([]int, n)
		for i := range sites {
			sites[i] = i % max(n/12, 1)
		}
		all := make([][]int, n)
		for i := range sites {
			all[i] = sharers(i, sites, make([]bool, n))
		}
		for i, js := range all {
			if len(js) > filetransfer.MaxMembers {
				t.Fatalf("%d of %d shares with %d peers", i, n, len(js))
			}
			for j := range sites {
				if with := slices.Contains(js, j); with != slices.Contains(all[j], i) || i != j && sites[i] == sites[j] && n > 18 && !with {
					t.Fatalf("%d of %d, at site %d, shares with %v", i, n, sites[i], js)
				}
			}
		}
	}
}

// TestLocalPeersShareOnlyWithEachOther: peers at the submitter's site share only with each other,
// and so do the others.
func TestLocalPeersShareOnlyWithEachOther(t *testing.T) {
	sites, local := []int{0, 1, 1, 3, 3, 0}, []bool{true, false, false, false, false, true}
	for i, want := range [][]int{{5}, {2, 3, 4}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3}, {0}} {
		if got := sharers(i, sites, local); !slices.Equal(got, want) {
			t.Errorf("peer %d shares with %v, want %v", i, got, want)
		}
	}
}

func TestLocalSites(t *testing.T) {
	at := func(site string, addresses ...string) reservation.Domain {
		return reservation.Domain{Site: site, Addresses: addresses}
	}
	tests := []struct {
		name    string
		own     reservation.Domain
		domains []reservation.Domain
		want    []bool
	}{
		{"names", at("a"), []reservation.Domain{at("a", "192.0.2.1"), at("b", "192.168.1.2")}, []bool{true, false}},
		{"addresses of a local network", at("a"), []reservation.Domain{at("", "192.168.1.2"), at("", "127.0.0.1"), at("", "fe80::1"), at("", "192.0.2.1"), at("")}, []bool{true, true, true, false, false}},
		{"the submitter has no name", at(""), []reservation.Domain{at("a", "10.0.0.2"), at("a", "192.0.2.1"), at("b", "192.0.2.2")}, []bool{true, true, false}},
		{"its own address", at("", "192.0.2.1", "2001:db8::/64"), []reservation.Domain{at("", "192.0.2.1"), at("", "2001:db8::/64"), at("", "2001:db8:1::/64")}, []bool{true, true, false}},
		{"behind the router of a peer of its name", at("a"), []reservation.Domain{at("a", "192.0.2.1"), at("", "192.0.2.1")}, []bool{true, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := localSites(tt.domains, sitesOf(tt.domains), tt.own); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
