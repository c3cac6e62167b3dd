package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// finds returns an error unless a peer finds exactly n peers that offer slots, including itself.
func (p *peerProcess) finds(n int) error {
	client := http.Client{
		Timeout: 20 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.home, "control.sock"))
			},
		},
	}
	resp, err := client.Get("http://peer/v1/candidates")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var found []json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return err
	}
	if len(found) != n {
		return fmt.Errorf("the search finds %d peers, want %d", len(found), n)
	}
	return nil
}

// expectAllFound waits until each of the peers finds all of them, and no other peer.
func expectAllFound(t *testing.T, what string, peers ...*peerProcess) {
	t.Helper()
	start := time.Now()
	for i, p := range peers {
		eventually(t, fmt.Sprintf("%s: peer %d", what, i), func() error { return p.finds(len(peers)) })
	}
	t.Logf("%s: all found by all after %v", what, time.Since(start))
}

// restarted kills a peer, boots it again on the same home without a supernode, and returns the new process.
func (p *peerProcess) restarted() *peerProcess {
	p.kill()
	q := p.machine.startPeer(p.t, p.home, "--slots", "1")
	q.awaitReady()
	return q
}

// plugInto moves the port to another switch, of which there may be several.
func (p *port) plugInto(bridge string) {
	p.t.Helper()
	p.hub.run(p.t, "ip", "link", "set", p.name, "master", bridge)
}

// TestLANHeals makes peers lose each other in every way, after the supernode that introduced them
// has ended. They must find each other again without help.
func TestLANHeals(t *testing.T) {
	t.Parallel()
	machines := withoutMDNS(newLAN(t, 5))
	peers := lanGrid(t, machines, "--slots", "1")
	expectAllFound(t, "at first", peers...)

	asleep, fellAsleep := peers[3], time.Now()
	asleep.signal(syscall.SIGSTOP)

	machines[0].lan.hub.runAll(t, `ip link add other type bridge
		ip link set other up`)
	machines[3].lan.plugInto("other") // the machine of peers[2]
	peers[2], peers[0] = peers[2].restarted(), peers[0].restarted()
	expectAllFound(t, "this side of the split", peers[:2]...)
	expectAllFound(t, "the other side", peers[2])
	machines[3].lan.plugInto("lan")
	expectAllFound(t, "joined", peers[:3]...)

	machines[2].inside.runAll(t, `ip addr flush dev eth0
		ip addr add 10.77.0.100/24 dev eth0
		ip route add default dev eth0`)
	expectAllFound(t, "with another address", peers[:3]...)

	const connectionsBreak = 45 * time.Second                // to a machine that sleeps
	time.Sleep(time.Until(fellAsleep.Add(connectionsBreak))) // the time under test: the sleep of a machine
	asleep.signal(syscall.SIGCONT)
	expectAllFound(t, "awake", peers...)

	for _, p := range peers {
		p.kill()
	}
	machines[2].addr = "10.77.0.100"
	for i, p := range peers {
		peers[i] = p.restarted()
	}
	expectAllFound(t, "all restarted", peers...)
}

// TestLANPluggedInLate boots a peer before its machine has an address; mDNS must find it later.
func TestLANPluggedInLate(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 2)
	late := machines[1].lan.inside
	late.runAll(t, `ip addr flush dev eth0
		ip link set eth0 down`)
	machines[1].addr = "127.0.0.1"
	var peers []*peerProcess
	for _, m := range machines {
		p := m.startPeer(t, t.TempDir(), "--slots", "1")
		p.awaitReady()
		peers = append(peers, p)
	}
	expectAllFound(t, "unplugged", peers[1])
	late.configure(t, "10.77.0.2")
	expectAllFound(t, "plugged in", peers...)
}
