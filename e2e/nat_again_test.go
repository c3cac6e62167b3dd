package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// renumber gives the router another public address, as a provider does. The kernel discards the router's
// address translations for the old one.
func (h *home) renumber(addr string) {
	h.t.Helper()
	h.router.runAll(h.t, fmt.Sprintf(`ip addr del %s/8 dev wan
		ip addr add %s/8 dev wan`, h.addr, addr))
	h.addr = addr
}

// restart kills the peer and starts another with the same home at the same address.
func (p *peerProcess) restart(options ...string) *peerProcess {
	p.t.Helper()
	p.kill()
	again := p.machine.startPeer(p.t, p.home, append(options, "--listen", strings.TrimSuffix(p.addr, "/p2p/"+p.id))...)
	again.awaitReady()
	return again
}

// TestNATPunchedAgain restarts the supernode and changes the public address of a home network, in either order.
// The connection between two homes is punched again without a restart of their peers.
func TestNATPunchedAgain(t *testing.T) {
	t.Parallel()
	for _, restartFirst := range []bool{true, false} {
		name := map[bool]string{true: "restart, then address", false: "address, then restart"}[restartFirst]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInternet(t)
			homes := []*home{i.home(cone, 1), i.home(cone, 1)}
			g := i.natGrid(homes...)
			g.peers[0].awaitWay(g.peers[1], "punched")
			if !restartFirst {
				homes[0].renumber("11.0.1.77")
			}
			g.relays[0].restart("--slots", "0")
			if restartFirst {
				homes[0].renumber("11.0.1.77")
			}
			g.peers[0].awaitConnection(g.peers[1], func(c connection) bool { return c.Way != "punched" }) // the old one is gone
			g.peers[0].awaitWay(g.peers[1], "punched")
		})
	}
}
