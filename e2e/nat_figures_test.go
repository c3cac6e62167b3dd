package e2e

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var natFigures = flag.Int("nat.figures", 0, "rounds in which it is measured how peers behind all kinds of routers reach each other")

// TestNATFigures measures how peers of all kinds reach each other within a time, 20 ms
// apart, and when; it prints a table. Nothing is asserted: other tests do that.
func TestNATFigures(t *testing.T) {
	if *natFigures == 0 {
		t.Skip("measures, with -nat.figures")
	}
	ways := make(map[string]map[string][]float64) // by kinds of both, then way: seconds until
	for range *natFigures {
		for kinds, reached := range meetAll(t, time.Minute) {
			if ways[kinds] == nil {
				ways[kinds] = make(map[string][]float64)
			}
			ways[kinds][reached.way] = append(ways[kinds][reached.way], reached.after.Seconds())
		}
	}
	var table strings.Builder
	for _, kinds := range slices.Sorted(maps.Keys(ways)) {
		for way, seconds := range ways[kinds] {
			slices.Sort(seconds)
			fmt.Fprintf(&table, "| %s | %s | %d | %.1f (%.1f–%.1f) |\n", kinds, way, len(seconds), seconds[len(seconds)/2], seconds[0], seconds[len(seconds)-1])
		}
	}
	t.Logf("\n| peers | way | pairs | s until |\n| --- | --- | --- | --- |\n%s", table.String())
}

// reached is how one peer reaches another best, and since when, after it was ready.
type reached struct {
	way   string
	after time.Duration
}

// meetAll boots a peer of each kind, and two of some, and returns how each pair is
// connected in the end: for so long it is looked.
func meetAll(t *testing.T, lasts time.Duration) map[string]reached {
	t.Helper()
	i := newInternet(t)
	walled := i.public()
	walled.oneWay(t)
	homes := []*home{i.home(cone, 1), i.home(cone, 1), i.home(symmetric, 1), i.home(symmetric, 1), i.home(symmetric, 1)}
	homes[4].mapPorts()
	g := i.natGrid(homes...)
	kinds := []string{"cone", "cone 2", "symmetric", "symmetric 2", "maps ports"}
	for name, m := range map[string]*machine{"one way": walled, "public": i.public()} {
		p := m.startPeer(t, t.TempDir(), g.introduced("--slots", "1")...)
		p.awaitReady()
		g.peers, kinds = append(g.peers, p), append(kinds, name)
	}
	best := make(map[string]reached)
	for start := time.Now(); time.Since(start) < lasts; time.Sleep(200 * time.Millisecond) {
		for a, p := range g.peers {
			s, err := p.status()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range s.Connections {
				b := slices.IndexFunc(g.peers, func(p *peerProcess) bool { return p.id == c.Peer })
				if b < a { // a relay, or seen from the other side
					continue
				}
				name := strings.Join([]string{kinds[a], kinds[b]}, " – ")
				if best[name].way != c.Way {
					best[name] = reached{c.Way, time.Since(start)}
				}
			}
		}
	}
	for _, p := range g.peers {
		p.halt()
	}
	for _, p := range g.relays {
		p.halt()
	}
	return best
}
