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
	conns    []line // to the other peer
	own      netip.Addr
	answered string // connection that has answered before
	heard    bool   // the relay has answered before
	dialled  bool   // a dial has ended before
	gone     bool   // no job with the peer any more
	want     orders
}

func TestWhatIsDoneAboutAConnection(t *testing.T) {
	a, b := line{id: "a", local: here, arrived: 1}, line{id: "b", local: here, arrived: 1}
	grown := func(arrived uint64) []line { return []line{{id: "a", local: here, arrived: arrived}} }
	circuit := func(below uint64) []line { return []line{{id: "a", arrived: 1, relay: relay, below: below}} }
	all := func(l ...line) []line { return l }
	ask := func(ids ...string) orders { return orders{ask: ids} }
	tests := map[string][]moment{
		"one that works": {
			{after: 0, conns: all(a)},
			{after: askPeriod, conns: all(a), want: ask("a")},
			{after: askPeriod + time.Second, conns: all(a), answered: "a"},
			{after: 2 * askPeriod, conns: all(a), want: ask("a")},
		},
		"one that does not answer is dropped, and the peer dialled": {
			{after: 0, conns: all(a)},
			{after: askPeriod, conns: all(a), want: ask("a")},
			{after: askPeriod + askAtLeast, conns: all(a), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: askPeriod + askAtLeast + dialFirst},
			{after: 10 * time.Second, dialled: true},
			{after: 10*time.Second + dialFirst, want: orders{dial: []p2ppeer.ID{other}}},
			{after: 11 * time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
			{after: 12 * time.Second, conns: all(b)},
		},
		"one that is full stays, and is asked on": {
			{after: 0, conns: grown(1)},
			{after: askPeriod, conns: grown(1), want: ask("a")},
			{after: askPeriod + time.Second, conns: grown(2)},
			{after: 2 * askPeriod, conns: grown(2), want: ask("a")},
			{after: 3 * askPeriod, conns: grown(3), want: ask("a")},
			{after: 3*askPeriod + askAtLeast - 1, conns: grown(4), want: ask("a")},
			{after: 3*askPeriod + 2*askAtLeast - 2, conns: grown(4)},
			{after: 3*askPeriod + 2*askAtLeast - 1, conns: grown(4), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"a circuit whose probe waits in the relay's queue stays, and is judged once the probe has arrived": {
			{after: 0, conns: circuit(1)},
			{after: askPeriod, conns: circuit(2), want: ask("a")},
			{after: askPeriod + time.Second, conns: circuit(3), want: orders{hops: []p2ppeer.ID{relay}}},
			{after: askPeriod + askAtLeast, conns: circuit(4)},
			{after: askPeriod + 2*askAtLeast, conns: circuit(5)},
			{after: askPeriod + 3*askAtLeast, conns: circuit(6), heard: true},
			{after: askPeriod + 4*askAtLeast - 1, conns: circuit(7)},
			{after: askPeriod + 4*askAtLeast, conns: circuit(8), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"a circuit whose relay is silent too is dropped": {
			{after: 0, conns: circuit(1)},
			{after: askPeriod, conns: circuit(1), want: ask("a")},
			{after: askPeriod + time.Second, conns: circuit(1), want: orders{hops: []p2ppeer.ID{relay}}},
			{after: askPeriod + askAtLeast, conns: circuit(1), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"what has arrived before it was asked is no answer": {
			{after: 0, conns: grown(1)},
			{after: askPeriod, conns: grown(2), want: ask("a")},
			{after: askPeriod + askAtLeast, conns: grown(2), want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
		},
		"one from an address that is no more": {
			{after: 0, conns: all(a)},
			{after: time.Second, conns: all(a), own: moved, want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: 2 * time.Second, conns: all(line{id: "b", local: moved, arrived: 1}), own: moved, want: orders{back: []p2ppeer.ID{other}}},
		},
		"one from any address may be from one that is no more": {
			{after: 0, conns: all(line{id: "a", local: netip.IPv4Unspecified(), arrived: 1})},
			{after: time.Second, conns: all(line{id: "a", local: netip.IPv4Unspecified(), arrived: 1}), own: moved, want: orders{drop: []string{"a"}, dial: []p2ppeer.ID{other}}},
			{after: 2 * time.Second, conns: all(line{id: "b", local: netip.IPv4Unspecified(), arrived: 1}), own: moved, want: orders{back: []p2ppeer.ID{other}}},
			{after: 3 * time.Second, conns: all(line{id: "b", local: netip.IPv4Unspecified(), arrived: 1}), own: moved},
		},
		"one from any address of another family": {
			{after: 0, conns: all(line{id: "a", local: netip.IPv6Unspecified(), arrived: 1})},
			{after: time.Second, conns: all(line{id: "a", local: netip.IPv6Unspecified(), arrived: 1}), own: moved},
		},
		"the other end has closed one of two": {
			{after: 0, conns: all(a, b)},
			{after: time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
		},
		"one through a relay is from no address": {
			{after: 0, conns: all(line{id: "a"})},
			{after: time.Second, conns: all(line{id: "a"}), own: moved},
		},
		"the older is asked when another comes": {
			{after: 0, conns: all(a)},
			{after: time.Millisecond, conns: all(a, b), want: ask("a")},
			{after: time.Millisecond + askAtLeast, conns: all(a, b), want: orders{ask: []string{"b"}, drop: []string{"a"}, back: []p2ppeer.ID{other}}},
		},
		"one from an address that no interface lists": {
			{after: 0, conns: all(line{id: "a", local: moved, arrived: 1})},
			{after: time.Second, conns: all(line{id: "a", local: moved, arrived: 1})},
		},
		"one within a machine": {
			{after: 0, conns: all(line{id: "a", local: loopback, arrived: 1}), own: loopback},
			{after: time.Second, conns: all(line{id: "a", local: loopback, arrived: 1}), own: here},
		},
		"two are asked one after the other": {
			{after: 0, conns: all(a, b)},
			{after: askPeriod, conns: all(a, b), want: ask("a")},
			{after: askPeriod + time.Second, conns: all(a, b), answered: "a", want: ask("b")},
		},
		"another has come in place of one": {
			{after: 0, conns: all(a)},
			{after: time.Second, conns: all(b), want: orders{back: []p2ppeer.ID{other}}},
		},
		"one that was never there is not missed": {{after: 0}, {after: time.Hour}},
		"nor is one of a job that is over": {
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
				seen := map[p2ppeer.ID]sight{other: {conns: m.conns}}
				if m.gone {
					seen = nil
				}
				got := w.look(now, seen, []netip.Addr{own})
				if !slices.Equal(got.ask, m.want.ask) || !slices.Equal(got.hops, m.want.hops) || !slices.Equal(got.drop, m.want.drop) || !slices.Equal(got.dial, m.want.dial) || !slices.Equal(got.back, m.want.back) {
					t.Fatalf("moment %d: got %+v, want %+v", i, got, m.want)
				}
			}
		})
	}
}

func TestDialsGetRarerAndNeverStop(t *testing.T) {
	w, now := newWatch(), time.Unix(1000, 0)
	w.look(now, map[p2ppeer.ID]sight{other: {conns: []line{{id: "a", local: here, arrived: 1}}}}, nil)
	dials := 0
	for range 600 { // one minute
		now = now.Add(100 * time.Millisecond)
		if out := w.look(now, map[p2ppeer.ID]sight{other: {}}, nil); len(out.dial) > 0 {
			dials++
			w.dialled(now, other)
		}
	}
	if dials < 28 || dials > 40 {
		t.Errorf("got %d dials in a minute, want one in two seconds and a few more", dials)
	}
}

func TestAJobThatBearsMoreIsMorePatient(t *testing.T) {
	for tolerates, want := range map[time.Duration]time.Duration{0: askAtLeast, 2 * time.Second: askAtLeast, 40 * time.Second: 10 * time.Second} {
		if got := maxSilence(tolerates); got != want {
			t.Errorf("tolerates %v: got %v, want %v", tolerates, got, want)
		}
	}
}
