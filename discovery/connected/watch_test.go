package connected

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	other = p2ppeer.ID("other")
	relay = p2ppeer.ID("relay")
)

var (
	here  = netip.MustParseAddr("10.0.0.1")
	moved = netip.MustParseAddr("10.0.0.2")

	loopback = netip.MustParseAddr("127.0.0.2")
)

// A moment is an input of a watch with the expected orders.
type moment struct {
	after    time.Duration
	conns    []connState // to the other peer
	own      netip.Addr
	answered string // connection that has answered before
	heard    bool   // the relay has answered before
	dialled  bool   // a dial has ended before
	gone     bool   // the last job with the peer is over
	want     orders
}

func TestWatchActions(t *testing.T) {
	a, b := connState{id: "a", local: here, arrived: 1}, connState{id: "b", local: here, arrived: 1}
	grown := func(arrived uint64) []connState { return []connState{{id: "a", local: here, arrived: arrived}} }
	circuit := func(below uint64) []connState { return []connState{{id: "a", arrived: 1, relay: relay, below: below}} }
	all := func(l ...connState) []connState { return l }
	probe := func(ids ...string) orders { return orders{probe: ids} }
	tests := map[string][]moment{
		"a working connection": {
			{after: 0, conns: all(a)},
			{after: probePeriod, conns: all(a), want: probe("a")},
			{after: probePeriod + time.Second, conns: all(a), answered: "a"},
			{after: 2 * probePeriod, conns: all(a), want: probe("a")},
		},
		"an unresponsive connection is dropped, and the peer dialled": {
			{after: 0, conns: all(a)},
			{after: probePeriod, conns: all(a), want: probe("a")},
			{after: probePeriod + leastSilence, conns: all(a), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: probePeriod + leastSilence + dialFirst},
			{after: 10 * time.Second, dialled: true},
			{after: 10*time.Second + dialFirst, want: orders{dial: []p2ppeer.ID{other}}},
			{after: 11 * time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
			{after: 12 * time.Second, conns: all(b)},
		},
		"a busy connection stays, and is still probed": {
			{after: 0, conns: grown(1)},
			{after: probePeriod, conns: grown(1), want: probe("a")},
			{after: probePeriod + time.Second, conns: grown(2)},
			{after: 2 * probePeriod, conns: grown(2), want: probe("a")},
			{after: 3 * probePeriod, conns: grown(3), want: probe("a")},
			{after: 3*probePeriod + leastSilence - 1, conns: grown(4), want: probe("a")},
			{after: 3*probePeriod + 2*leastSilence - 2, conns: grown(4)},
			{after: 3*probePeriod + 2*leastSilence - 1, conns: grown(4), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"a circuit whose probe waits in the relay's queue stays, and is judged once the probe has arrived": {
			{after: 0, conns: circuit(1)},
			{after: probePeriod, conns: circuit(2), want: probe("a")},
			{after: probePeriod + time.Second, conns: circuit(3), want: orders{relays: []p2ppeer.ID{relay}}},
			{after: probePeriod + leastSilence, conns: circuit(4)},
			{after: probePeriod + 2*leastSilence, conns: circuit(5)},
			{after: probePeriod + 3*leastSilence, conns: circuit(6), heard: true},
			{after: probePeriod + 4*leastSilence - 1, conns: circuit(7)},
			{after: probePeriod + 4*leastSilence, conns: circuit(8), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"a circuit whose relay is silent too is dropped": {
			{after: 0, conns: circuit(1)},
			{after: probePeriod, conns: circuit(1), want: probe("a")},
			{after: probePeriod + time.Second, conns: circuit(1), want: orders{relays: []p2ppeer.ID{relay}}},
			{after: probePeriod + leastSilence, conns: circuit(1), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"data received before the probe does not count": {
			{after: 0, conns: grown(1)},
			{after: probePeriod, conns: grown(2), want: probe("a")},
			{after: probePeriod + leastSilence, conns: grown(2), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"a connection from a lost address": {
			{after: 0, conns: all(a)},
			{after: time.Second, conns: all(a), own: moved, want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: 2 * time.Second, conns: all(connState{id: "b", local: moved, arrived: 1}), own: moved, want: orders{back: []p2ppeer.ID{other}}},
		},
		"a connection from an unspecified address may be from a lost one": {
			{after: 0, conns: all(connState{id: "a", local: netip.IPv4Unspecified(), arrived: 1})},
			{after: time.Second, conns: all(connState{id: "a", local: netip.IPv4Unspecified(), arrived: 1}), own: moved, want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: 2 * time.Second, conns: all(connState{id: "b", local: netip.IPv4Unspecified(), arrived: 1}), own: moved, want: orders{back: []p2ppeer.ID{other}}},
			{after: 3 * time.Second, conns: all(connState{id: "b", local: netip.IPv4Unspecified(), arrived: 1}), own: moved},
		},
		"a connection from an unspecified address of another family": {
			{after: 0, conns: all(connState{id: "a", local: netip.IPv6Unspecified(), arrived: 1})},
			{after: time.Second, conns: all(connState{id: "a", local: netip.IPv6Unspecified(), arrived: 1}), own: moved},
		},
		"the other end has closed one of two": {
			{after: 0, conns: all(a, b)},
			{after: time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
		},
		"a circuit uses no local address": {
			{after: 0, conns: all(connState{id: "a"})},
			{after: time.Second, conns: all(connState{id: "a"}), own: moved},
		},
		"the older connection is probed when another opens": {
			{after: 0, conns: all(a)},
			{after: time.Millisecond, conns: all(a, b), want: probe("a")},
			{after: time.Millisecond + leastSilence, conns: all(a, b), want: orders{probe: []string{"b"}, drop: []string{"a"}, back: []p2ppeer.ID{other}}},
		},
		"a connection from an address that no interface lists": {
			{after: 0, conns: all(connState{id: "a", local: moved, arrived: 1})},
			{after: time.Second, conns: all(connState{id: "a", local: moved, arrived: 1})},
		},
		"a connection within a machine": {
			{after: 0, conns: all(connState{id: "a", local: loopback, arrived: 1}), own: loopback},
			{after: time.Second, conns: all(connState{id: "a", local: loopback, arrived: 1}), own: here},
		},
		"two connections are probed one after the other": {
			{after: 0, conns: all(a, b)},
			{after: probePeriod, conns: all(a, b), want: probe("a")},
			{after: probePeriod + time.Second, conns: all(a, b), answered: "a", want: probe("b")},
		},
		"a connection was replaced by another": {
			{after: 0, conns: all(a)},
			{after: time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
		},
		"a peer that was never connected is not dialled": {{after: 0}, {after: time.Hour}},
		"a peer of a job that is over is not dialled": {
			{after: 0, conns: all(a)},
			{after: time.Second, gone: true},
			{after: 2 * time.Second},
		},
	}
	start := time.Unix(1000, 0)
	for name, moments := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWatch()
			for i, m := range moments {
				now := start.Add(m.after)
				if m.answered != "" {
					w.answered(other, m.answered)
				}
				if m.heard {
					w.heard(now, relay, true)
				}
				if m.dialled {
					w.dialled(now, other)
				}
				own := here
				if m.own.IsValid() {
					own = m.own
				}
				seen := map[p2ppeer.ID]partnerState{other: {conns: m.conns}}
				if m.gone {
					seen = nil
				}
				got := w.decide(now, seen, []netip.Addr{own})
				if !slices.Equal(got.probe, m.want.probe) || !slices.Equal(got.relays, m.want.relays) || !slices.Equal(got.drop, m.want.drop) || !slices.Equal(got.dial, m.want.dial) || !slices.Equal(got.back, m.want.back) {
					t.Fatalf("moment %d: got %+v, want %+v", i, got, m.want)
				}
			}
		})
	}
}

func TestDialsBackOffIndefinitely(t *testing.T) {
	w, now := newWatch(), time.Unix(1000, 0)
	w.decide(now, map[p2ppeer.ID]partnerState{other: {conns: []connState{{id: "a", local: here, arrived: 1}}}}, nil)
	dials := 0
	for range 600 { // one minute
		now = now.Add(100 * time.Millisecond)
		if out := w.decide(now, map[p2ppeer.ID]partnerState{other: {}}, nil); len(out.dial) > 0 {
			dials++
			w.dialled(now, other)
		}
	}
	if dials < 28 || dials > 40 {
		t.Errorf("got %d dials in a minute, want one in two seconds and a few more", dials)
	}
}

func TestMaxSilenceGrowsWithTheToleratedHang(t *testing.T) {
	for tolerates, want := range map[time.Duration]time.Duration{0: leastSilence, 2 * time.Second: leastSilence, 40 * time.Second: 10 * time.Second} {
		if got := maxSilence(tolerates); got != want {
			t.Errorf("tolerated hang %v: got %v, want %v", tolerates, got, want)
		}
	}
}
