package relay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

const id = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"

func relayAt(t *testing.T, addrs ...string) p2ppeer.AddrInfo {
	t.Helper()
	p, err := p2ppeer.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	r := p2ppeer.AddrInfo{ID: p}
	for _, a := range addrs {
		r.Addrs = append(r.Addrs, ma.StringCast(a))
	}
	return r
}

// TestRelayRequestSchedule applies sequences of events in virtual time.
func TestRelayRequestSchedule(t *testing.T) {
	r := relayAt(t, "/ip4/11.0.0.1/tcp/1")
	type step struct {
		at   time.Duration
		do   func(p *plan, now time.Time)
		asks bool // after this step
	}
	grant := func(p *plan, now time.Time) { p.granted(r.ID, now.Add(time.Hour), nil, now) }
	refuse := func(p *plan, now time.Time) { p.refused(r.ID, now) }
	lose := func(p *plan, now time.Time) { p.lost(r.ID, now) }
	meet := func(p *plan, now time.Time) { p.met(r.ID, now) }
	nothing := func(*plan, time.Time) {}
	tests := map[string][]step{
		"requested at once, and only once":            {{0, nothing, true}, {time.Hour, nothing, false}},
		"renewed before expiry":                       {{0, nothing, true}, {0, grant, false}, {29 * time.Minute, nothing, false}, {30 * time.Minute, nothing, true}},
		"requested again after a refusal":             {{0, nothing, true}, {0, refuse, false}, {retryMin, nothing, true}},
		"longer interval after a second refusal":      {{0, nothing, true}, {0, refuse, false}, {retryMin, nothing, true}, {retryMin, refuse, false}, {2 * retryMin, nothing, false}, {3 * retryMin, nothing, true}},
		"requested at once after a loss":              {{0, nothing, true}, {0, grant, false}, {time.Minute, lose, true}},
		"no request while one is pending":             {{0, nothing, true}, {0, lose, false}},
		"requested at once when the relay reconnects": {{0, nothing, true}, {0, refuse, false}, {retryMin / 2, meet, true}},
		"no request only because the relay connects":  {{0, nothing, true}, {0, grant, false}, {time.Second, meet, false}},
		"no request while the peer is reachable":      {{0, func(p *plan, _ time.Time) { p.reachable(true) }, false}, {time.Hour, func(p *plan, _ time.Time) { p.reachable(false) }, true}},
	}
	start := time.Unix(1000, 0)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlan([]p2ppeer.AddrInfo{r})
			for i, s := range steps {
				now := start.Add(s.at)
				s.do(p, now)
				if got := len(p.due(now)) == 1; got != s.asks {
					t.Fatalf("step %d, after %v: got a request: %v, want %v", i, s.at, got, s.asks)
				}
			}
		})
	}
}

// names returns relays of which only the ID is known.
func names(all ...string) (found []p2ppeer.AddrInfo) {
	for _, n := range all {
		found = append(found, p2ppeer.AddrInfo{ID: p2ppeer.ID(n)})
	}
	return found
}

// TestRelaySelection uses one configured relay, G, and six found relays. Each step states which relays receive a
// request after it.
func TestRelaySelection(t *testing.T) {
	type step struct {
		at    time.Duration
		do    func(p *plan, now time.Time)
		asked string
	}
	grant := func(ids ...p2ppeer.ID) func(*plan, time.Time) {
		return func(p *plan, now time.Time) {
			for _, id := range ids {
				p.granted(id, now.Add(time.Hour), nil, now)
			}
		}
	}
	refuse := func(id p2ppeer.ID) func(*plan, time.Time) {
		return func(p *plan, now time.Time) { p.refused(id, now) }
	}
	lose := func(id p2ppeer.ID) func(*plan, time.Time) {
		return func(p *plan, now time.Time) { p.lost(id, now) }
	}
	forget := func(id p2ppeer.ID) func(*plan, time.Time) {
		return func(p *plan, _ time.Time) { p.forget(id) }
	}
	nothing := func(*plan, time.Time) {}
	tests := map[string][]step{
		"requests to the wanted number of relays": {{0, nothing, "[G a b]"}, {time.Second, nothing, "[]"}},
		"no requests beyond the wanted number":    {{0, nothing, "[G a b]"}, {0, grant("G", "a", "b"), "[]"}},
		"another relay replaces a lost one":       {{0, nothing, "[G a b]"}, {0, grant("G", "a", "b"), "[]"}, {time.Second, lose("a"), "[c]"}},
		"another relay replaces the lost relay G": {{0, nothing, "[G a b]"}, {0, grant("G", "a", "b"), "[]"}, {time.Second, lose("G"), "[G c]"}, {2 * time.Second, grant("c"), "[]"}},
		"another relay replaces one that refuses": {{0, nothing, "[G a b]"}, {0, refuse("b"), "[c]"}},
		"relays in use are kept":                  {{0, nothing, "[G a b]"}, {0, grant("G", "a", "b"), "[]"}, {30 * time.Minute, forget("a"), "[G a b]"}},
		"forgotten relays are not used":           {{0, forget("a"), "[G b c]"}},
		"no requests if the peer is reachable":    {{0, func(p *plan, _ time.Time) { p.reachable(true) }, "[]"}},
	}
	start := time.Unix(1000, 0)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlan(names("G"))
			for _, r := range names("a", "b", "c", "d", "e", "f") {
				p.find(r)
			}
			for i, s := range steps {
				now := start.Add(s.at)
				s.do(p, now)
				asked := []string{}
				for _, r := range p.due(now) {
					asked = append(asked, string(r.ID))
				}
				slices.Sort(asked)
				if got := fmt.Sprint(asked); got != s.asked {
					t.Fatalf("step %d: requests to %s, want %s", i, got, s.asked)
				}
			}
		})
	}
}

// TestFoundRelaysAreBounded finds a thousand relays, all of which always refuse.
func TestFoundRelaysAreBounded(t *testing.T) {
	p := newPlan(nil)
	for i := range 1000 {
		p.find(p2ppeer.AddrInfo{ID: p2ppeer.ID(fmt.Sprint(i))})
	}
	if len(p.relays) != maxFound || len(p.found) != maxFound {
		t.Errorf("%d relays are known, %d of them as found; want %d", len(p.relays), len(p.found), maxFound)
	}
	for range 100 * maxFound {
		now, ok := p.next()
		if !ok {
			break
		}
		for _, r := range p.due(now) {
			p.refused(r.ID, now)
		}
	}
	if len(p.relays) > 0 {
		t.Errorf("%d relays are still known", len(p.relays))
	}
}

func TestPausesAreBounded(t *testing.T) {
	r := relayAt(t)
	p, now := newPlan([]p2ppeer.AddrInfo{r}), time.Unix(1000, 0)
	for range 20 {
		p.due(now)
		p.refused(r.ID, now)
		next, ok := p.next()
		if !ok || next.Sub(now) > retryMax {
			t.Fatalf("the next request is due after %v, %v; want within %v", next.Sub(now), ok, retryMax)
		}
		now = next
	}
}

func TestAddressesThroughARelay(t *testing.T) {
	const suffix = "/p2p/" + id + "/p2p-circuit"
	tests := map[string]struct {
		known, via, want []string
	}{
		"known address": {[]string{"/ip4/11.0.0.1/tcp/1"}, nil, []string{"/ip4/11.0.0.1/tcp/1" + suffix}},
		"another address that the relay reports": {
			[]string{"/ip4/11.0.0.1/tcp/1"}, []string{"/ip4/11.0.0.1/tcp/1/p2p/" + id, "/ip4/10.0.0.1/tcp/1/p2p/" + id},
			[]string{"/ip4/10.0.0.1/tcp/1" + suffix, "/ip4/11.0.0.1/tcp/1" + suffix},
		},
		"loopback address of a remote relay": {
			[]string{"/ip4/11.0.0.1/tcp/1"}, []string{"/ip4/127.0.0.1/tcp/1/p2p/" + id}, []string{"/ip4/11.0.0.1/tcp/1" + suffix},
		},
		"loopback address of a relay on this machine": {[]string{"/ip4/127.0.0.1/tcp/1"}, nil, []string{"/ip4/127.0.0.1/tcp/1" + suffix}},
	}
	now := time.Unix(1000, 0)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := relayAt(t, test.known...)
			p := newPlan([]p2ppeer.AddrInfo{r})
			if got := p.circuits(); len(got) > 0 {
				t.Errorf("got %v without a reservation", got)
			}
			p.granted(r.ID, now.Add(time.Hour), relayAt(t, test.via...).Addrs, now)
			var got []string
			for _, a := range p.circuits() {
				got = append(got, a.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			p.lost(r.ID, now)
			if got := p.circuits(); len(got) > 0 {
				t.Errorf("got %v after the loss", got)
			}
		})
	}
}

func TestAddressesAreBounded(t *testing.T) {
	r := relayAt(t)
	p, now := newPlan([]p2ppeer.AddrInfo{r}), time.Unix(1000, 0)
	var many []ma.Multiaddr
	for i := range 100 {
		many = append(many, ma.StringCast(fmt.Sprint("/ip4/11.0.0.1/tcp/", i)))
	}
	p.granted(r.ID, now.Add(time.Hour), many, now)
	if got := len(p.circuits()); got > maxAddresses {
		t.Errorf("got %d addresses, want at most %d", got, maxAddresses)
	}
}
