package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAutoReplicas boots peers with a history, one of which has just been killed, in a network of reliable peers
// and in one of unreliable ones. p2prun must choose the number of replicas by the formula in
// docs/reliability.md, and report the reason.
func TestAutoReplicas(t *testing.T) {
	t.Parallel()
	const (
		peers  = 4
		ranks  = 2
		wanted = 0.95
		expect = 2 * time.Hour
	)
	tests := []struct {
		name     string
		up       time.Duration
		ends     int
		replicas int
	}{
		{"solid", 60 * 24 * time.Hour, 0, 1},
		{"flaky", 56 * time.Hour, 19, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			field := bootWithHistory(t, peers, tt.up, tt.ends)
			j := startJob(t, "--home", t.TempDir(), "--supernode", field[0].addr, "--json", "-w", "60", "-n", "2",
				"-r", "auto", "--success", "0.95", "--expect", "2h", filepath.Join(bin, "stepper"), "-steps", "5")
			chosen := j.waitFor("the number of replicas", func(e event) bool { return e.Choice != nil })
			placed := j.waitFor("placement", func(e event) bool { return len(e.Placed) > 0 }).Placed
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			c := chosen.Choice
			if c.Replicas != tt.replicas || c.Peers < tt.replicas || c.Peers > peers {
				t.Errorf("%d replicas for %d peers, want %d", c.Replicas, c.Peers, tt.replicas)
			}
			// p2prun chooses as soon as it has found enough peers, which may not be all.
			f, killed := failing(tt.up, tt.ends, expect), failing(tt.up, tt.ends+1, expect)
			among := f + (killed-f)/float64(c.Peers)
			if !near(c.Fails, among) && (c.Peers == peers || !near(c.Fails, f)) {
				t.Errorf("one of %d peers fails with probability %v, want %v, or %v without the killed peer", c.Peers, c.Fails, among, f)
			}
			succeeds := func(r int) float64 { return math.Pow(1-math.Pow(c.Fails, float64(r)), ranks) }
			if math.Abs(c.Success-succeeds(c.Replicas)) > 1e-12 || c.Success < wanted || succeeds(c.Replicas-1) >= wanted {
				t.Errorf("with %d replicas success is %v, want %v; with one fewer it is %v", c.Replicas, c.Success, succeeds(c.Replicas), succeeds(c.Replicas-1))
			}
			if len(placed) != ranks*tt.replicas {
				t.Errorf("%d processes were placed, want %d", len(placed), ranks*tt.replicas)
			}
		})
	}
}

// near allows for the seconds that the peers have run since they were booted.
func near(got, want float64) bool { return math.Abs(got-want) < 1e-3*want }

// failing returns the probability that a peer fails within a time, by the formula in
// docs/reliability.md.
func failing(up time.Duration, ends int, within time.Duration) float64 {
	return 1 - math.Exp(-float64(ends+1)*within.Hours()/(up.Hours()+24))
}

// bootWithHistory boots n peers with a given time of operation and number of unclean shutdowns. The last run of
// the first peer also ended uncleanly, which the peer detects by itself.
func bootWithHistory(t *testing.T, n int, up time.Duration, ends int) []*peerProcess {
	t.Helper()
	supernode := boot(t, "--slots", "0")
	var peers []*peerProcess
	for i := range n {
		home := t.TempDir()
		past, err := json.Marshal(map[string]any{"up": up, "ends": ends, "running": i == 0})
		if err == nil {
			err = os.WriteFile(filepath.Join(home, "history"), past, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, loopback.startPeer(t, home, "--supernode", supernode.addr, "--slots", "2"))
	}
	for _, p := range peers {
		p.awaitReady()
	}
	return peers
}
