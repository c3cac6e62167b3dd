package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
)

// A natGrid is a network whose volunteers are all behind routers.
type natGrid struct {
	relays []*peerProcess // public peers without slots; the first is the supernode
	peers  []*peerProcess // volunteers of one slot
	homeOf map[string]*home
}

// natGrid boots two public peers and a volunteer on every machine of the homes. All know
// the first public peer only. It is 20 ms from everybody at home to all others.
func (i *internet) natGrid(homes ...*home) *natGrid {
	i.t.Helper()
	g := &natGrid{homeOf: make(map[string]*home)}
	public := []*machine{i.public(), i.public()}
	for _, h := range homes {
		i.distance(h.port, ether.Way{Delay: 10 * time.Millisecond})
	}
	for n, m := range public {
		p := m.startPeer(i.t, i.t.TempDir(), g.introduced("--slots", "0")...)
		p.awaitReady()
		g.relays = append(g.relays, p)
		i.t.Logf("relay %d is %s", n, p.id)
	}
	var at []*home
	for _, h := range homes {
		for _, m := range h.machines {
			g.peers = append(g.peers, m.startPeer(i.t, i.t.TempDir(), g.introduced("--slots", "1")...))
			at = append(at, h)
		}
	}
	for n, p := range g.peers {
		p.awaitReady()
		g.homeOf[p.id] = at[n]
	}
	return g
}

// introduced adds to the options of a peer that the first of the public peers is its
// supernode.
func (g *natGrid) introduced(options ...string) []string {
	if len(g.relays) == 0 {
		return options
	}
	return append(options, "--supernode", g.relays[0].addr)
}

// submit runs a program from the first volunteer.
func (g *natGrid) submit(t *testing.T, n, r string, program ...string) *job {
	t.Helper()
	options := []string{"-n", n, "-r", r, "-w", "60", "--timeout", "200s", "--verbose"}
	return g.peers[0].machine.submit(t, g.peers[0].home, append(options, program...)...)
}

// A pair is two homes, and what is between a peer of the one and one of the other.
type pair struct {
	from, to *home
	route
}

// pairs waits until the ways between the job's processes are known, and returns those of
// processes on different peers.
func (g *natGrid) pairs(j *job) (all []pair) {
	j.t.Helper()
	at := func(p struct{ Rank, Replica int }) *home {
		return g.homeOf[j.placed[fmt.Sprintf("%d.%d", p.Rank, p.Replica)]]
	}
	e := j.waitFor("the channels", func(e event) bool { return e.Event == "channels" })
	for _, r := range e.Routes {
		if r.Kind != "self" {
			all = append(all, pair{at(r.From[0]), at(r.To[0]), r})
		}
	}
	return all
}

// expectWays expects that peers of a home reach each other directly, and those of others
// through relays where one of the two routers is symmetric. It reports whether all other
// pairs are punched: that may take them a while.
func expectWays(t *testing.T, pairs []pair) (punched bool) {
	t.Helper()
	punched = true
	for _, p := range pairs {
		want := "stream punched"
		switch {
		case p.from == p.to:
			want = "tcp direct"
		case p.from.kind == symmetric || p.to.kind == symmetric:
			want = "stream relayed"
		}
		switch got := p.Kind + " " + p.Way; {
		case got == want:
		case want == "stream punched" && got == "stream relayed":
			punched = false
		default:
			t.Errorf("from home %d to home %d: want %s of %+v", p.from.number, p.to.number, want, p.route)
		}
	}
	return punched
}

// TestNATThreeHomes runs jobs whose peers are behind three routers: EP, until all pairs
// are punched that can be; and heat, which loses a peer.
func TestNATThreeHomes(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	g := i.natGrid(i.home(cone, 2), i.home(cone, 2), i.home(symmetric, 2))
	start, punched := time.Now(), false
	for !punched && time.Since(start) < limit {
		ep := g.submit(t, "3", "2", run("ep", "-class", "S")...)
		punched = expectWays(t, g.pairs(ep))
		if s := ep.wait(); s != 0 || !strings.Contains(ep.stdout.String(), "Verification = SUCCESSFUL") {
			t.Fatalf("ep: exit status %d", s)
		}
		expectNobodyFailed(t, ep)
	}
	if !punched {
		t.Error("not all pairs are punched that could be")
	}

	heat := run("heat", "-side", "127", "-tolerance", "0", "-steps", "300")
	alone := startJob(t, append([]string{"--home", t.TempDir(), "--json", "--local", "3", "-n", "3"}, heat...)...)
	if s := alone.wait(); s != 0 {
		t.Fatalf("heat alone: exit status %d", s)
	}
	j := g.submit(t, "3", "2", heat...)
	j.waitRunning()
	g.peers[2].kill()
	if s := j.wait(); s != 0 {
		t.Fatalf("heat: exit status %d", s)
	}
	if !strings.Contains(j.stderr.String(), "failed with its peer") {
		t.Error("nobody was lost")
	}
	if got, want := heatLines(j), heatLines(alone); got != want || want == "" {
		t.Errorf("heat printed %q, want %q", got, want)
	}
	expectNothingLeft(t, g.peers)
}
