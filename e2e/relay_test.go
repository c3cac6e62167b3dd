package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// relayGrid boots a supernode on the first machine and a volunteer with one slot on each other
// machine. No volunteer can reach another. relayGrid returns when all are ready.
func relayGrid(t *testing.T, machines []*machine, args ...string) (supernode *peerProcess, peers []*peerProcess) {
	t.Helper()
	supernode = machines[0].startPeer(t, t.TempDir(), "--slots", "0")
	supernode.awaitReady()
	for _, m := range machines[1:] {
		m.lan.isolate()
		p := m.startPeer(t, t.TempDir(), append([]string{"--slots", "1", "--supernode", supernode.addr}, args...)...)
		peers = append(peers, p)
	}
	start := time.Now()
	for _, p := range peers {
		p.awaitReady()
	}
	t.Logf("all ready after %v", time.Since(start))
	return supernode, peers
}

// TestLANRelay runs peers that can reach the supernode but not each other, as behind firewalls that admit no
// connection. All their traffic passes through the supernode. The same is true of the submitter, which is one of
// these peers.
func TestLANRelay(t *testing.T) {
	t.Parallel()
	setups := map[string]struct {
		replicas string
		args     []string // of the volunteers
	}{
		"r=1, automatic reachability":  {"1", nil},
		"r=2, reachability configured": {"2", []string{"--reachability", "private"}},
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			supernode, peers := relayGrid(t, withoutMDNS(newLAN(t, 5)), setup.args...)
			j := peers[0].machine.submit(t, peers[0].home, "-n", "2", "-r", setup.replicas, "-w", "60", "--timeout", "100s", "--verbose",
				filepath.Join(bin, "stepper"), "-steps", "50", "-every", "10")
			e := j.waitFor("the channels", func(e event) bool { return e.Event == "channels" })
			for _, r := range e.Routes {
				if r.Kind != "self" && (r.Kind != "stream" || r.Relay != supernode.id || !strings.Contains(r.Why, "no tcp: ")) {
					t.Errorf("got a channel of kind %q through %q, because %q; want a stream through %s and the reason why there is no tcp", r.Kind, r.Relay, r.Why, supernode.id)
				}
			}
			t.Logf("channels: %+v", e.Routes)
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 2, 50, 10)
			expectNoFailure(t, j)
			expectNothingLeft(t, peers)
		})
	}
}
