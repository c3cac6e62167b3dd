package e2e

import (
	"fmt"
	"testing"
	"time"
)

// rejects makes a firewall between two machines reject all packets between them, and report that to
// both.
func (m *machine) rejects(t *testing.T, other *machine) {
	t.Helper()
	m.inside.nft(t, fmt.Sprintf(`table ip wall {
		chain in {
			type filter hook input priority 0
			ip saddr %[1]s meta l4proto tcp reject with tcp reset
			ip saddr %[1]s reject
		}
		chain out {
			type filter hook output priority 0
			ip daddr %[1]s tcp flags rst accept
			ip daddr %[1]s meta l4proto icmp accept
			ip daddr %[1]s meta l4proto tcp reject with tcp reset
			ip daddr %[1]s reject
		}
	}`, other.addr))
}

// TestLANFirewallThatRejects closes a firewall in the middle of a job, between two of its peers,
// and between a peer and the submitter. It refuses connections, like the machine of a peer that has
// ended. The two must reach each other through a relay, and no process may be failed (V3).
func TestLANFirewallThatRejects(t *testing.T) {
	needs(t, "nft")
	t.Parallel()
	type setup struct {
		replicas  int
		submitter bool // the submitter is one of the two
	}
	setups := map[string]setup{"two peers, r=1": {1, false}, "the submitter, r=2": {2, true}}
	if *full {
		setups["two peers, r=2"] = setup{2, false}
		setups["the submitter, r=1"] = setup{1, true}
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines := withoutMDNS(newLAN(t, 2+3*setup.replicas))
			supernode := machines[0].startPeer(t, t.TempDir(), "--slots", "0")
			supernode.awaitReady()
			var peers []*peerProcess
			for _, m := range machines[2:] {
				peers = append(peers, m.startPeer(t, t.TempDir(), "--slots", "1", "--supernode", supernode.addr, "--reachability", "private"))
			}
			for _, p := range peers {
				p.awaitReady()
			}
			const steps = 250
			j := machines[1].lasting(t, supernode, setup.replicas, steps, "20s", "--reachability", "private")
			j.printed("rank 1 step 50 ")
			other := machines[1]
			if !setup.submitter {
				other = j.peerOf(peers, "0.0").machine
			}
			j.peerOf(peers, "1.0").machine.rejects(t, other)
			closed := time.Now()
			j.printed("rank 1 step 250 ")
			t.Logf("the last step came %v after the firewall closed", time.Since(closed))
			expectUnharmed(t, j, steps, peers)
		})
	}
}
