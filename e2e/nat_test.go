package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
)

// A natGrid is a network whose volunteers are all behind routers.
type natGrid struct {
	relays []*peerProcess // public peers without slots; the first is the supernode
	peers  []*peerProcess // volunteers with one slot each
	homeOf map[string]*home

	started time.Time // time when the last of them was started
}

// natGrid boots two public peers and a volunteer on every machine of the homes. All know only the
// first public peer. The delay between a home and all others is 20 ms.
func (i *internet) natGrid(homes ...*home) *natGrid {
	i.t.Helper()
	g := &natGrid{homeOf: make(map[string]*home)}
	public := []*machine{i.public(), i.public()}
	for _, h := range homes {
		i.distance(h.port, ether.Link{Delay: 10 * time.Millisecond})
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
	g.started = time.Now()
	for n, p := range g.peers {
		p.awaitReady()
		g.homeOf[p.id] = at[n]
	}
	return g
}

// introduced adds the first public peer as supernode to the options of a peer.
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

// A pair is two homes, with the route between a peer of one and a peer of the other.
type pair struct {
	from, to *home
	route
}

// pairs waits until the routes between the job's processes are known, and returns those between
// different peers.
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

// expectWays expects that peers in one home reach each other directly, and that relays connect
// different homes if one of the routers is symmetric. It reports whether all other pairs are
// punched. That may take a while, and a process may end before.
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
		case p.Kind == "" && strings.HasSuffix(p.Why, " has ended"): // before the route was queried
			punched = false
		default:
			t.Errorf("from home %d to home %d: want %s of %+v", p.from.number, p.to.number, want, p.route)
		}
	}
	return punched
}

// TestNATThreeHomes runs jobs whose peers are behind three routers. EP runs until all pairs are
// punched where possible. The heat example loses a peer, and then the relay with most of its
// traffic.
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
		expectNoFailure(t, ep)
	}
	if !punched {
		t.Error("some pairs that could be hole-punched are not")
	}

	heat := run("heat", "-side", "127", "-tolerance", "0", "-steps", "300")
	alone := startJob(t, append([]string{"--home", t.TempDir(), "--json", "--local", "3", "-n", "3"}, heat...)...)
	if s := alone.wait(); s != 0 {
		t.Fatalf("heat alone: exit status %d", s)
	}
	j := g.submit(t, "3", "2", heat...)
	j.waitRunning()
	relay := g.relayInUse(t, g.pairs(j))
	g.peers[5].kill() // one behind the symmetric router: the other is reached through the relay
	j.waitFor("the new view", func(e event) bool { return e.Event == "view" && strings.Contains(e.Text, "failed with its peer") })
	relay.kill()
	if s := j.wait(); s != 0 {
		t.Fatalf("heat: exit status %d", s)
	}
	if got, want := heatLines(j), heatLines(alone); got != want || want == "" {
		t.Errorf("heat printed %q, want %q", got, want)
	}
	expectNothingLeft(t, g.peers)
}

// relayInUse returns the relay that carries most of the job's routes.
func (g *natGrid) relayInUse(t *testing.T, pairs []pair) *peerProcess {
	t.Helper()
	uses := make([]int, len(g.relays))
	for _, p := range pairs {
		for i, r := range g.relays {
			if p.Relay == r.id {
				uses[i]++
			}
		}
	}
	most := slices.Index(uses, slices.Max(uses))
	if uses[most] == 0 {
		t.Fatalf("no route uses a relay: %+v", pairs)
	}
	t.Logf("relays are used by %d pairs", uses)
	return g.relays[most]
}

// TestNATLectureRoom runs thirty peers behind one address, and a job from outside that needs all of
// them. Each connects to the supernode and to the submitter.
//
// It does not run in parallel with other tests: peers on a machine that is so busy may be
// considered silent.
func TestNATLectureRoom(t *testing.T) {
	i := newInternet(t)
	start := time.Now()
	g := i.natGrid(i.home(cone, 30))
	t.Logf("all ready after %v", time.Since(start))
	outside := i.public()
	j := outside.submit(t, t.TempDir(), "--supernode", g.relays[0].addr,
		"-n", "15", "-r", "2", "-w", "60", "--timeout", "200s", "--tolerated-hang", crowdedHang.String(),
		filepath.Join(bin, "stepper"), "-steps", "50")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	t.Logf("done after %v", time.Since(start))
	expectStepper(t, j, 15, 50, 10)
	expectNoFailure(t, j)
	expectNothingLeft(t, g.peers)
	t.Logf("nothing is left after %v", time.Since(start))
}

// awaitWay waits until a peer is connected to another by one of these kinds of connections.
func (p *peerProcess) awaitWay(to *peerProcess, ways ...string) {
	p.t.Helper()
	p.awaitConnection(to, func(c connection) bool { return slices.Contains(ways, c.Way) })
}

// awaitConnection waits until the best connection of a peer to another satisfies wanted.
func (p *peerProcess) awaitConnection(to *peerProcess, wanted func(connection) bool) {
	p.t.Helper()
	start := time.Now()
	var last connection
	eventually(p.t, fmt.Sprintf("connection of %s with %s", p.machine.addr, to.machine.addr), func() error {
		s, err := p.status()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(s.Connections, func(c connection) bool { return c.Peer == to.id })
		if i < 0 {
			return errors.New("there is no connection")
		}
		if last = s.Connections[i]; !wanted(last) {
			return fmt.Errorf("the connection is %s: %s", last.Way, last.Why)
		}
		return nil
	})
	p.t.Logf("from %s to %s: %s after %v: %s", p.machine.addr, to.machine.addr, last.Way, time.Since(start), last.Why)
}

// TestNATRouterMapsPorts uses routers between which no hole can be punched. One of the two maps
// ports, so its peer and the processes there can be reached directly.
func TestNATRouterMapsPorts(t *testing.T) {
	t.Parallel()
	for how, mapPorts := range map[string]func(*home){"NAT-PMP": (*home).mapByPMP, "UPnP": (*home).mapByUPnP} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			i := newInternet(t)
			homes := []*home{i.home(symmetric, 1), i.home(symmetric, 1)}
			mapPorts(homes[0])
			g := i.natGrid(homes...)
			g.peers[1].awaitWay(g.peers[0], "direct", "punched")
			g.peers[0].expectFinding("port mapping", "ok", "maps ports ("+how+") at "+homes[0].addr)
			j := g.submit(t, "2", "1", filepath.Join(bin, "stepper"), "-steps", "50", "-every", "10")
			pairs := g.pairs(j)
			in := slices.IndexFunc(pairs, func(p pair) bool { return p.to == homes[0] })
			if in < 0 || pairs[in].Kind != "tcp" || pairs[in].Way != "direct" {
				t.Errorf("got %+v, want tcp to home 1", pairs)
			}
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 2, 50, 10)
			expectNoFailure(t, j)
			if len(homes[0].mappings()) == 0 {
				t.Error("no port is mapped")
			}
			if g.peers[0].halt(); len(homes[0].mappings()) != 0 {
				t.Errorf("the peer has left the mappings %v behind", homes[0].mappings())
			}
		})
	}
}

// expectFinding expects a finding of p2pboot doctor.
func (p *peerProcess) expectFinding(about, level, found string) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "p2pboot"), "doctor", "--json", "--home", p.home)
	p.machine.prepare(cmd, p.home)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := p.machine.start(cmd); err != nil {
		p.t.Fatal(err)
	}
	cmd.Wait() // its status is that of the worst finding
	var all []struct{ About, Level, Found string }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		p.t.Fatalf("p2pboot doctor: %v: %q", err, out.String())
	}
	for _, f := range all {
		if f.About == about && f.Level == level && strings.Contains(f.Found, found) {
			return
		}
	}
	p.t.Errorf("p2pboot doctor of %s: want %s, %s: %s; got %s", p.machine.addr, about, level, found, out.String())
}

// TestNATHolePunchedLater makes two routers block each other while their peers connect. The peers use
// the relay until a hole can be punched. libp2p itself tries that only at the beginning.
func TestNATHolePunchedLater(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	homes := []*home{i.home(cone, 1), i.home(cone, 1)}
	homes[0].block(homes[1], true)
	homes[1].block(homes[0], true)
	g := i.natGrid(homes...)
	g.peers[0].awaitWay(g.peers[1], "relayed")
	gaveUp := regexp.MustCompile(`no hole was punched \(attempts: ([3-9]|\d\d+)\)`)
	g.peers[0].awaitConnection(g.peers[1], func(c connection) bool { return gaveUp.MatchString(c.Why) })
	homes[0].block(homes[1], false)
	homes[1].block(homes[0], false)
	g.peers[0].awaitWay(g.peers[1], "punched")
}

// TestNATSlowAndLossy runs peers on bad links: far away, behind a router whose upload rate is a
// tenth of its download rate, and on a link that loses packets. Another peer has a public address
// and a firewall that admits only replies. A job that needs all of them must have the right answer,
// and no peer may be considered failed.
func TestNATSlowAndLossy(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	walled := i.public()
	walled.oneWay(t)
	near, far := i.home(cone, 1), i.home(cone, 2)
	g := i.natGrid(near, far)
	i.distance(far.port, ether.Link{Delay: 75 * time.Millisecond, Loss: 0.01})
	far.rates(2, 20)
	behind := walled.startPeer(t, t.TempDir(), g.introduced("--slots", "1")...)
	behind.awaitReady()
	g.peers = append(g.peers, behind)
	j := g.submit(t, "2", "2", filepath.Join(bin, "stepper"), "-steps", "50", "-every", "10")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, 50, 10)
	expectNoFailure(t, j)
	g.peers[0].awaitWay(behind, "punched", "direct")
	g.peers[1].awaitWay(behind, "punched", "direct")
	g.relays[0].awaitWay(behind, "direct")
	expectNothingLeft(t, g.peers)
}
