package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

var (
	natRounds = flag.Int("nat.rounds", 1, "connect peers behind routers of all kinds in `N` rounds")
	natOut    = flag.String("nat.out", "", "write the table of TestNATAllKinds into the section nat:kinds of `FILE`, such as docs/networking.md")
)

// A meeting is the best connection of two peers, with the time since all were started.
type meeting struct {
	way   string
	after time.Duration
	rtt   time.Duration
}

// TestNATAllKinds connects peers behind routers of all kinds, with a delay of 20 ms. Each pair must
// reach the best kind of connection for its routers. The test reports the time until then, and the
// round-trip time.
//
// It does not run in parallel with other tests: eleven peers that dial each other occupy all
// processors.
func TestNATAllKinds(t *testing.T) {
	met := make(map[string][]meeting) // by the kinds of both
	for range *natRounds {
		t.Run("round", func(t *testing.T) {
			for kinds, meetings := range meetAll(t) {
				met[kinds] = append(met[kinds], meetings...)
			}
		})
	}
	table := markdown.Table(meetingRows(met))
	t.Logf("\n%s", table)
	if *natOut == "" || t.Failed() {
		return
	}
	if err := markdown.Insert(*natOut, "nat:kinds", table); err != nil {
		t.Error(err)
	}
}

// meetAll boots two peers of each kind, and returns how each pair is connected.
func meetAll(t *testing.T) map[string][]meeting {
	t.Helper()
	i := newInternet(t)
	mapping := []*home{i.home(symmetric, 1), i.home(symmetric, 1)}
	mapping[0].mapByPMP()
	mapping[1].mapByUPnP()
	for _, h := range mapping {
		h.kind = mapsPorts
	}
	homes := append(mapping, i.outdoors(public), i.outdoors(oneWay), i.outdoors(oneWay),
		i.home(cone, 1), i.home(cone, 1), i.home(symmetric, 1), i.home(symmetric, 1))
	g := i.natGrid(homes...)
	met := make(map[[2]int]meeting)
	eventually(t, "the best possible connections", func() error { return g.look(met) })
	for n, h := range homes {
		if found, ok := natFound[h.kind]; ok {
			g.peers[n].expectFinding("NAT", found[0], found[1])
		}
	}
	out := make(map[string][]meeting)
	for pair, m := range met {
		kinds := kindsOf(homes[pair[0]], homes[pair[1]])
		out[kinds] = append(out[kinds], m)
	}
	for _, p := range slices.Concat(g.peers, g.relays) {
		p.halt() // before the next round
		if strings.Contains(p.log.String(), "above the limit") {
			t.Errorf("peer %s refuses the traffic of honest peers:\n%s", p.id, p.log)
		}
	}
	return out
}

// natFound is the report of p2pboot doctor on address translation, by the kind of home: level and
// text.
var natFound = map[string][2]string{
	cone:      {"ok", "the router keeps the port of"},
	symmetric: {"warning", "(symmetric)"},
	public:    {"ok", ""}, // unknown until the peer has dialled another one, and not needed
	oneWay:    {"ok", "none"},
}

// look records how each pair of peers in the grid is connected now, by their indices. It returns an
// error with the pairs that do not have the best connection yet.
func (g *natGrid) look(met map[[2]int]meeting) error {
	var missing []string
	for a, p := range g.peers {
		s, err := p.status()
		if err != nil {
			return err
		}
		for b := a + 1; b < len(g.peers); b++ {
			from, to := g.homeOf[p.id], g.homeOf[g.peers[b].id]
			m := met[[2]int{a, b}]
			if i := slices.IndexFunc(s.Connections, func(c connection) bool { return c.Peer == g.peers[b].id }); i >= 0 {
				m.note(s.Connections[i], time.Since(g.started))
				met[[2]int{a, b}] = m
			}
			if !slices.Contains(bestWays(from.kind, to.kind), m.way) {
				missing = append(missing, fmt.Sprintf("%s: %q", kindsOf(from, to), m.way))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("still missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

func (m *meeting) note(c connection, now time.Duration) {
	if m.way != c.Way {
		*m = meeting{way: c.Way, after: now}
	}
	if c.RTT > 0 {
		m.rtt = c.RTT
	}
}

// bestWays returns the best kinds of connections for two kinds of routers. Both direct and punched connections may
// be possible. A port may be mapped after a hole was punched, and a hole also results when both
// peers happen to dial each other.
func bestWays(a, b string) []string {
	between := func(kind string) bool { return a == kind || b == kind }
	switch {
	case between(public):
		return []string{"direct"}
	case between(symmetric) && !between(mapsPorts):
		return []string{"relayed"}
	}
	return []string{"punched", "direct"}
}

// kindsOf returns the names of the kinds of two homes, in a fixed order.
func kindsOf(a, b *home) string {
	names := map[string]string{cone: "endpoint-independent", symmetric: "symmetric", mapsPorts: "symmetric, maps ports"}
	both := []string{cmp.Or(names[a.kind], a.kind), cmp.Or(names[b.kind], b.kind)}
	slices.Sort(both)
	return strings.Join(both, " – ")
}

// meetingRows returns table rows of the meetings by kind, with median, minimum and maximum.
func meetingRows(met map[string][]meeting) [][]string {
	rows := [][]string{{"the two peers are behind", "pairs", "direct", "punched", "relayed", "round trip, ms", "connected after, s"}}
	for _, kinds := range slices.Sorted(maps.Keys(met)) {
		ways := make(map[string]int)
		var rtts, afters []float64
		for _, m := range met[kinds] {
			ways[m.way]++
			rtts, afters = append(rtts, float64(m.rtt)/1e6), append(afters, m.after.Seconds())
		}
		row := []string{kinds, fmt.Sprint(len(afters))}
		for _, way := range []string{"direct", "punched", "relayed"} {
			row = append(row, strings.TrimPrefix(fmt.Sprint(ways[way]), "0"))
		}
		rows = append(rows, append(row, spread("%.0f", rtts), spread("%.1f", afters)))
	}
	return rows
}

// spread formats the median, the minimum and the maximum of values.
func spread(format string, values []float64) string {
	slices.Sort(values)
	return fmt.Sprintf(format+" ("+format+"–"+format+")", values[len(values)/2], values[0], values[len(values)-1])
}
