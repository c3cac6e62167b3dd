package reservation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// randomPeers returns peers with few machines, sites and owners, of different speeds. The owners are
// either all verified or all claimed.
func randomPeers(rnd *rand.Rand, n int) []PeerSlots {
	verified := rnd.IntN(2) == 0
	name := func(kind string, of int) string {
		if i := rnd.IntN(of + 1); i > 0 {
			return fmt.Sprint(kind, i)
		}
		return ""
	}
	peers := make([]PeerSlots, 1+rnd.IntN(8))
	for i := range peers {
		peers[i] = PeerSlots{
			Slots: rnd.IntN(n + 2), Cached: rnd.Int64N(3), Speed: rnd.IntN(3) * 1000, RTT: time.Duration(rnd.IntN(3)) * time.Millisecond,
			Domain: Domain{Addresses: labels("ip", name("a", 4)), Said: name("ip a", 4), Site: name("s", 3), Owner: name("o", 4), Verified: verified},
		}
	}
	return peers
}

// conflicts counts the pairs of replicas of one rank in one group.
func conflicts(group []int, a Assignment) int {
	in := map[[2]int]int{} // group and rank
	n := 0
	for i, ps := range a {
		for _, p := range ps {
			key := [2]int{group[i], p.Rank}
			n += in[key]
			in[key]++
		}
	}
	return n
}

// promised returns the widths that Assign satisfies if possible. Verified owners come before sites and
// addresses. Claimed owners come before sites, but never without addresses.
func promised(peers []PeerSlots, n, r int) []width {
	all, places := widths[:2], widths[2:4]
	if peers[0].Domain.Verified {
		all, places = ownersFirst[:3], ownersFirst[3:]
	}
	owners, _ := group(peers, all[len(all)-1])
	switch {
	case apart(peers, owners, n) < n*r:
		return places
	case peers[0].Domain.Verified:
		return all
	}
	return append(slices.Clone(all), width{address, claimedAddr})
}

// TestReplicasAreSeparatedIfPossible: for every promised width, if some placement separates the
// replicas of all ranks, the chosen one does. The master of a rank is its best peer.
func TestReplicasAreSeparatedIfPossible(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	choices := map[bool]int{} // with verified owners, and without
	for range 4000 {
		n, r := 1+rnd.IntN(6), 1+rnd.IntN(3)
		peers := randomPeers(rnd, n)
		for s := Spread; s <= DataConcentrate; s++ {
			if err := checkAssignment(s, peers, n, r); err != nil {
				t.Fatalf("seed %d: %v n=%d r=%d %+v: %v", seed, s, n, r, peers, err)
			}
			got, err := s.Assign(peers, n, r)
			if err != nil {
				continue
			}
			for width, w := range promised(peers, n, r) {
				group, _ := group(peers, w)
				if apart(peers, group, n) < n*r {
					continue
				}
				choices[peers[0].Domain.Verified]++
				if c := conflicts(group, got); c > 0 {
					t.Fatalf("seed %d: %v n=%d r=%d %+v: %d conflicts in width %d, in %v", seed, s, n, r, peers, c, width, got)
				}
			}
			checkMasters(t, seed, peers, got, n)
		}
	}
	if choices[true] == 0 || choices[false] == 0 {
		t.Fatal("no case had a choice")
	}
}

// place returns the peers of the replicas of the only rank.
func place(t *testing.T, peers ...Domain) (at []int) {
	t.Helper()
	slots := make([]PeerSlots, len(peers))
	for i, d := range peers {
		slots[i] = PeerSlots{Slots: 1, Domain: d}
	}
	got, err := Spread.Assign(slots, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, ps := range got {
		if len(ps) > 0 {
			at = append(at, i)
		}
	}
	return at
}

// TestReplicasGoToDifferentOwners: replicas are placed at different owners, even behind the same router, if
// the peers allow it.
func TestReplicasGoToDifferentOwners(t *testing.T) {
	signed := func(owner, address string) Domain {
		return Domain{Owner: owner, Verified: true, Addresses: []string{address}}
	}
	says := func(owner, address string) Domain { return Domain{Owner: owner, Addresses: []string{address}} }
	for _, test := range []struct {
		name  string
		peers []Domain
		want  []int
	}{
		{"different owners, far away", []Domain{signed("a", "1"), signed("a", "2"), signed("b", "3")}, []int{0, 2}},
		{"different owners, one router", []Domain{signed("a", "1"), signed("a", "2"), signed("b", "1")}, []int{0, 2}},
		{"one owner, two routers", []Domain{signed("a", "1"), signed("a", "1"), signed("a", "2")}, []int{0, 2}},
		{"one owner, one router", []Domain{signed("a", "1"), signed("a", "1")}, []int{0, 1}},
		{"same claim, far away", []Domain{says("a", "1"), says("a", "2"), says("b", "3")}, []int{0, 2}},
		{"same claim, one router", []Domain{says("a", "1"), says("a", "1"), says("b", "1")}, []int{0, 2}},
		{"a machine that claims two owners", []Domain{says("a", "1"), says("b", "1"), says("", "2")}, []int{0, 2}},
		{"two peers of unknown owners, and one more", []Domain{signed("", "1"), signed("", "2"), signed("b", "3")}, []int{0, 2}},
		{"a machine of two owners with tokens", []Domain{signed("a", "1"), signed("b", "1"), signed("", "1")}, []int{0, 1}},
	} {
		if got := place(t, test.peers...); !slices.Equal(got, test.want) {
			t.Errorf("%s: placed at %v, want %v", test.name, got, test.want)
		}
	}
}

// TestFalseDomainsDoNotMergeOthers: whatever some peers claim, three machines of different owners stay
// separated, and run as many processes as if the liars made no claims.
func TestFalseDomainsDoNotMergeOthers(t *testing.T) {
	const n, r = 4, 3
	at := func(address string, d Domain) Domain {
		d.Addresses = []string{address}
		return d
	}
	says := func(said, owner, site string) Domain { return Domain{Said: said, Owner: owner, Site: site} }
	member := func(said, site string) Domain { return Domain{Said: said, Owner: "m", Verified: true, Site: site} }
	for _, test := range []struct {
		name  string
		liars []Domain
	}{
		{"one machine of three owners", []Domain{at("l", says("", "a", "")), at("l", says("", "b", "")), at("l", says("", "c", ""))}},
		{"one machine at three sites", []Domain{at("l", says("", "", "sa")), at("l", says("", "", "sb")), at("l", says("", "", "sc"))}},
		{"same owner as one peer, same site as another", []Domain{says("", "a", "sb"), says("", "b", "sc"), says("", "c", "sa")}},
		{"same address as one peer, same owner as another", []Domain{says("1", "b", ""), says("2", "c", ""), says("3", "a", "")}},
		{"same address as one peer, same site as another", []Domain{says("1", "", "sb"), says("2", "", "sc"), says("3", "", "sa")}},
		{"one machine at three addresses", []Domain{at("l", says("1", "", "")), at("l", says("2", "", "")), at("l", says("3", "", ""))}},
		{"a member at three sites", []Domain{member("", "sa"), member("", "sb"), member("", "sc")}},
		{"a member at three addresses", []Domain{member("1", ""), member("2", ""), member("3", "")}},
	} {
		for quiet := range 8 { // set of the three machines that state only their address
			verified := test.liars[0].Verified
			var peers []PeerSlots
			for _, l := range test.liars {
				peers = append(peers, PeerSlots{Slots: 1, Domain: l})
			}
			for i, o := range []string{"a", "b", "c"} {
				d := Domain{Owner: o, Verified: verified, Addresses: []string{fmt.Sprint(i + 1)}, Site: "s" + o}
				if quiet>>i&1 == 1 && !verified {
					d.Owner, d.Site = "", ""
				} else if quiet>>i&1 == 1 {
					d.Site = ""
				}
				peers = append(peers, PeerSlots{Slots: n, Domain: d})
			}
			for _, o := range []string{"far", "farther"} { // other owners that the liars claim
				peers = append(peers, PeerSlots{Slots: n, Domain: Domain{Owner: o, Verified: verified, Addresses: []string{o}}})
			}
			got, err := Spread.Assign(peers, n, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(got[6]) > 2 || len(got[7]) > 2 {
				t.Errorf("%s, quiet %03b: %d and %d processes at the liars' far machines, want 2 of %d at most: %v", test.name, quiet, len(got[6]), len(got[7]), n*r, got)
			}
		}
	}
}

// TestApartPrefersOtherOwners: the replacement of a lost replica is separated from the remaining
// replica.
func TestApartPrefersOtherOwners(t *testing.T) {
	peer := func(id p2ppeer.ID, d Domain) Candidate { return Candidate{Peer: id, Domain: d} }
	left := []Domain{{Owner: "a", Verified: true, Addresses: []string{"1"}, Site: "s"}}
	got := Apart([]Candidate{
		peer("same owner", Domain{Owner: "a", Verified: true, Addresses: []string{"2"}}),
		peer("same router", Domain{Owner: "b", Verified: true, Addresses: []string{"1"}}),
		peer("same site", Domain{Owner: "b", Verified: true, Addresses: []string{"2"}, Site: "s"}),
		peer("far", Domain{Owner: "b", Verified: true, Addresses: []string{"2"}}),
		peer("farther", Domain{}),
	}, left)
	want := []p2ppeer.ID{"far", "farther", "same site", "same router", "same owner"}
	if !slices.EqualFunc(got, want, func(c Candidate, id p2ppeer.ID) bool { return c.Peer == id }) {
		t.Errorf("got %v, want %v", got, want)
	}
	left[0].Verified = false
	got = Apart([]Candidate{
		peer("same router", Domain{Owner: "b", Addresses: []string{"1"}}),
		peer("claims the same owner", Domain{Owner: "a", Addresses: []string{"2"}}),
	}, left)
	if got[0].Peer != "claims the same owner" {
		t.Errorf("got %v, want observed facts to count more than claims", got)
	}
}

// checkMasters checks that no replica of a rank is at a better peer than the previous one: faster, or as
// fast and nearer.
func checkMasters(t *testing.T, seed uint64, peers []PeerSlots, got Assignment, n int) {
	t.Helper()
	at := map[view.Process]PeerSlots{}
	for i, ps := range got {
		for _, p := range ps {
			at[p] = peers[i]
		}
	}
	for p, worse := range at {
		better, ok := at[view.Process{Rank: p.Rank, Replica: p.Replica - 1}]
		if ok && (worse.Speed > better.Speed || worse.Speed == better.Speed && worse.RTT < better.RTT) {
			t.Fatalf("seed %d: process %v is at %+v, the previous one at %+v", seed, p, worse, better)
		}
	}
}

// TestStrategiesWithoutDomainsMatchTheDigest: the number of processes of each peer agrees with the digest
// of P2P-MPI, which this file implements literally.
func TestStrategiesWithoutDomainsMatchTheDigest(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		n, r := 1+rnd.IntN(6), 1+rnd.IntN(3)
		peers := make([]PeerSlots, 1+rnd.IntN(9))
		for i := range peers {
			peers[i] = PeerSlots{Slots: rnd.IntN(n + 3), Cached: rnd.Int64N(4), Speed: rnd.IntN(5000)}
		}
		for s := Spread; s <= DataConcentrate; s++ {
			got, err := s.Assign(peers, n, r)
			if err != nil {
				continue
			}
			want := digest(s, peers, n, r)
			for i := range got {
				if len(got[i]) != want[i] {
					t.Fatalf("seed %d: %v n=%d r=%d %+v: got %v, want %v", seed, s, n, r, peers, got, want)
				}
			}
		}
	}
}

// digest distributes processes as in the digest: "spread: one process per host in each pass over the list
// until n·r are placed. concentrate: fill each host up to min(P, n)"; the data strategies order by bytes
// in the cache.
func digest(s Strategy, peers []PeerSlots, n, r int) []int {
	var order []int
	for i := range peers {
		order = append(order, i)
	}
	if s == DataSpread || s == DataConcentrate {
		slices.SortStableFunc(order, func(a, b int) int { return int(peers[b].Cached - peers[a].Cached) })
	}
	counts := make([]int, len(peers))
	for left := n * r; left > 0; {
		for _, i := range order {
			most := min(peers[i].Slots, n)
			for left > 0 && counts[i] < most {
				counts[i]++
				left--
				if s == Spread || s == DataSpread {
					break
				}
			}
		}
	}
	return counts
}

// TestMastersGetTheFastestSlots: without domains the masters get the n fastest slots.
func TestMastersGetTheFastestSlots(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		n, r := 1+rnd.IntN(6), 2+rnd.IntN(2)
		peers := make([]PeerSlots, n*r)
		for i := range peers {
			peers[i] = PeerSlots{Slots: 1, Speed: 1000 << rnd.IntN(6)}
		}
		got, err := Spread.Assign(peers, n, r)
		if err != nil {
			t.Fatal(err)
		}
		slowestMaster, fastestOther := 1<<30, 0
		for i, ps := range got {
			if ps[0].Replica == 0 {
				slowestMaster = min(slowestMaster, peers[i].Speed)
			} else {
				fastestOther = max(fastestOther, peers[i].Speed)
			}
		}
		if slowestMaster < fastestOther {
			t.Fatalf("seed %d: a master at speed %d, another replica at %d", seed, slowestMaster, fastestOther)
		}
	}
}

func TestDomainsAreTransitive(t *testing.T) {
	peers := []PeerSlots{
		{Domain: Domain{Addresses: []string{"1", "2"}, Site: "a"}},
		{Domain: Domain{Addresses: []string{"3"}, Site: "a"}},
		{Domain: Domain{Addresses: []string{"2", "3"}, Site: "a"}},
		{Domain: Domain{Said: "4", Site: "a"}},
		{Domain: Domain{Site: "1"}}, // a site is not an address
		{},
		{Domain: Domain{Addresses: []string{"4"}, Site: "a"}},
		{Domain: Domain{Addresses: []string{"5"}, Site: "a"}},
		{Domain: Domain{Addresses: []string{"5"}}}, // does not agree
	}
	for i, want := range []string{"[0 0 0 0 4 5 0 7 7]", "[0 0 0 3 4 5 3 7 7]", "[0 0 0 3 4 5 6 7 7]"} {
		if got, _ := group(peers, []width{{address, claimedAddr, site}, {address, claimedAddr}, {address}}[i]); fmt.Sprint(got) != want {
			t.Errorf("width %d: got %v, want %s", i, got, want)
		}
	}
	if got, _ := groups(make([]PeerSlots, 3), 1, 1); got != nil {
		t.Errorf("peers without domains: %v", got)
	}
}
