package submit

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestSelfReportedAddressesAreNotTrusted: the address that a peer connects from names its machine or
// router, and a liar cannot make other peers seem to fail together.
func TestSelfReportedAddressesAreNotTrusted(t *testing.T) {
	const (
		four, fourToo = "/ip4/130.79.1.1/tcp/4001", "/ip4/130.79.1.2/tcp/4001"
		six, sixToo   = "/ip6/2001:660:1::7/tcp/4001", "/ip6/2001:660:2::7/tcp/4001"
		relay         = "/ip4/130.79.9.9/tcp/4001/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N/p2p-circuit"
		private       = "/ip4/192.168.1.5/tcp/4001"
	)
	tests := []struct{ name, from, says, seen, said string }{
		{"connected from a public address", four, fourToo + " " + six, "130.79.1.1", ""},
		{"connected from two", four + " " + six, sixToo, "130.79.1.1 2001:660:1::/64", ""},
		{"connected by a relay, to a liar that claims all addresses", relay, relay + " " + four + " " + fourToo + " " + six + " " + sixToo, "", "130.79.1.1"},
		{"not connected", "", private + " " + four, "", "130.79.1.1"},
		{"not connected, of IPv6", "", six + " " + sixToo, "", "2001:660:1::/64"},
		{"not connected, of IPv6 first", "", six + " " + four, "", "130.79.1.1"},
		{"neighbour behind the same router", private, four + " " + fourToo, "192.168.1.5", "130.79.1.1"},
		{"neighbour without claims", private, "", "192.168.1.5", ""},
		{"claims private addresses only", "", private, "", ""},
	}
	parse := func(t *testing.T, list string) (out []ma.Multiaddr) {
		for _, s := range strings.Fields(list) {
			a, err := ma.NewMultiaddr(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, a)
		}
		return out
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen, said := homes(parse(t, tt.from), parse(t, tt.says))
			if !slices.Equal(seen, strings.Fields(tt.seen)) || said != tt.said {
				t.Errorf("got %v and %q, want %s and %q", seen, said, tt.seen, tt.said)
			}
		})
	}
}

// TestLostReplicaIsReplacedAtAnotherOwner: a new replica goes to a peer of a different owner than the rest of its
// rank.
func TestLostReplicaIsReplacedAtAnotherOwner(t *testing.T) {
	b := newBed(t, never, 1, 3, 3, 3, 3)
	runs, bobs := b.peers[0].ID(), b.peers[4].ID()
	b.submitter.cfg.Owner = func(id p2ppeer.ID) string {
		if id == bobs {
			return "bob"
		}
		return "alice"
	}
	e := newExecution(newRun(b.submitter, b.healing()), &reservation.Reservation{
		Placements: []reservation.Placement{{Peer: runs, Processes: []view.Process{proc(0, 0)}}},
	})
	e.j.spec.Programs = []jobspec.Program{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	alices, _ := e.recruitment.rest(0)
	for range 3 {
		f := e.j.recruit(t.Context(), vacancy{process: proc(0, 2), others: alices, without: map[p2ppeer.ID]bool{runs: true}, wide: eventTimeout}, e.peers.inbox)
		if f.err != nil {
			t.Fatal(f.err)
		}
		l := f.link
		if l.peer != bobs {
			t.Errorf("the new replica went to %s, of %q", l.peer, b.submitter.cfg.Owner(l.peer))
		}
		reservation.Leave(t.Context(), b.submitter.holder, e.j.spec.ID, []p2ppeer.ID{l.peer})
	}
}

// TestLostReplicaIsReplacedOnAnotherMachine: a new replica goes to a different machine than the rest of its rank.
// If there is none, the user is told.
func TestLostReplicaIsReplacedOnAnotherMachine(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	for i, machine := range []string{"one", "one", "another"} {
		b.peers[i].standsOn(machine, 1)
	}
	e := newExecution(newRun(b.submitter, b.healing()), &reservation.Reservation{})
	e.j.spec.Programs = []jobspec.Program{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	own := e.j.recruit(t.Context(), vacancy{process: proc(0, 0), without: idsOf(b.peers[1], b.peers[2])}, e.peers.inbox)
	if own.err != nil {
		t.Fatal(own.err)
	}
	machines := []string{own.link.slots.Machine}
	f := e.j.recruit(t.Context(), vacancy{process: proc(0, 1), machines: machines, without: idsOf(b.peers[0]), wide: eventTimeout}, e.peers.inbox)
	if f.err != nil || f.link.peer != b.peers[2].ID() {
		t.Errorf("the new replica went to %v: %v", f.link, f.err)
	}
	reservation.Leave(t.Context(), b.submitter.holder, e.j.spec.ID, []p2ppeer.ID{b.peers[2].ID()})
	f = e.j.recruit(t.Context(), vacancy{process: proc(0, 1), machines: machines, without: idsOf(b.peers[0], b.peers[2]), wide: eventTimeout}, e.peers.inbox)
	if short, ok := errors.AsType[*reservation.ShortageError](f.err); !ok || short.Reasons[reservation.SameMachine] != 1 {
		t.Errorf("without another machine: %v", f.err)
	}
}

func idsOf(members ...*member) map[p2ppeer.ID]bool {
	out := make(map[p2ppeer.ID]bool)
	for _, m := range members {
		out[m.ID()] = true
	}
	return out
}

// TestPeersOfOneMachineWidenTheSearch: without that, a search would end at the same near peers
// again.
func TestPeersOfOneMachineWidenTheSearch(t *testing.T) {
	b := newBed(t, never, 2, 2)
	for _, p := range b.peers {
		p.standsOn("one", 2)
	}
	q := &slotSearch{
		j: newRun(b.submitter, b.request(2, 2)), began: time.Now(), deadline: time.Now().Add(time.Minute),
		found: make(chan searchResult, 1), asked: make(map[p2ppeer.ID]struct{}),
	}
	q.j.events = Showing(func(Event) error { return nil })
	defer q.j.events.finish()
	q.j.spec.Programs = []jobspec.Program{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	defer q.endLooking()
	if got := q.need().Slots; got != 4 {
		t.Errorf("looks for %d slots at first, want 4", got)
	}
	if _, short, err := q.attempt(t.Context()); short == nil {
		t.Fatalf("got %v, want a shortage", err)
	}
	if got := q.need().Slots; got != 6 {
		t.Errorf("looks for %d slots then, want 6", got)
	}
	q.leave(t.Context())
}
