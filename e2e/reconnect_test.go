package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// changeAddress replaces the address of the machine.
func (m *machine) changeAddress(t *testing.T, addr string) {
	t.Helper()
	m.inside.runAll(t, fmt.Sprintf(`ip addr del %s/24 dev eth0
		ip addr add %s/24 dev eth0
		ip route replace default dev eth0`, m.addr, addr))
	m.addr = addr
}

// lasting starts a job of three ranks without replacements, with steps of 50 ms or more. hang is the value of
// --tolerated-hang, or "" for the default.
func (m *machine) lasting(t *testing.T, supernode *peerProcess, replicas, steps int, hang string, options ...string) *job {
	t.Helper()
	options = append([]string{"-r", fmt.Sprint(replicas), "--heal", "off"}, options...)
	if hang != "" {
		options = append(options, "--tolerated-hang", hang)
	}
	return m.paced(t, supernode, steps, 50, 50*time.Millisecond, options...)
}

// expectUnharmed expects that the job ends with the right answer, that no process has failed, and that nothing
// is left.
func expectUnharmed(t *testing.T, j *job, steps int, peers []*peerProcess) {
	t.Helper()
	expectSteady(t, j, steps)
	expectNoFailure(t, j)
	expectNothingLeft(t, peers)
}

// TestLANAddressChangesUnderAJob changes the address of a machine in the middle of a job: a peer's
// machine, and the submitter's. No process is notified, and no process may be failed (V3).
func TestLANAddressChangesUnderAJob(t *testing.T) {
	t.Parallel()
	const quic = "/ip4/0.0.0.0/udp/0/quic-v1"
	for name, setup := range map[string]struct {
		replicas  int
		submitter bool   // true if the submitter's address changes, not a peer's
		listen    string // address of one transport, or empty for both
	}{
		"a peer, r=1":        {1, false, ""},
		"a peer, r=1, QUIC":  {1, false, quic},
		"a peer, r=2":        {2, false, ""},
		"the submitter, r=1": {1, true, ""},
		"the submitter, r=2": {2, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines := newLAN(t, 1+3*setup.replicas)
			var options []string
			if setup.listen != "" {
				options = []string{"--listen", setup.listen}
			}
			for _, m := range machines {
				m.boot = options
			}
			peers := lanGrid(t, machines, "--slots", "1")
			const steps = 250
			j := machines[0].lasting(t, peers[0], setup.replicas, steps, "20s", options...)
			j.printed("rank 1 step 50 ")
			who := machines[0]
			if !setup.submitter {
				who = j.peerOf(peers, "1.0").machine
			}
			moved := time.Now()
			who.changeAddress(t, "10.77.0.99")
			j.printed("rank 1 step 250 ")
			t.Logf("the last step came %v after the move", time.Since(moved))
			expectUnharmed(t, j, steps, peers)
		})
	}
}

// TestLANLinkCutWithinTheToleratedHang unplugs a machine for 30 s in the middle of a job that
// tolerates 40 s: a peer's machine, and the submitter's. Nothing may be lost and no process may be
// failed (V3).
func TestLANLinkCutWithinTheToleratedHang(t *testing.T) {
	t.Parallel()
	const tcp, quic = "/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"
	type setup struct {
		replicas  int
		submitter bool   // true if the submitter is cut off, not a peer
		listen    string // address of one transport, or empty for both
	}
	setups := map[string]setup{
		"a peer, r=1, TCP":   {1, false, tcp},
		"a peer, r=2, QUIC":  {2, false, quic},
		"the submitter, r=1": {1, true, ""},
	}
	if *full {
		setups["a peer, r=1"] = setup{1, false, ""}
		setups["a peer, r=1, QUIC"] = setup{1, false, quic}
		setups["a peer, r=2, TCP"] = setup{2, false, tcp}
		setups["the submitter, r=1, QUIC"] = setup{1, true, quic}
		setups["the submitter, r=2, TCP"] = setup{2, true, tcp}
		setups["the submitter, r=2, QUIC"] = setup{2, true, quic}
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines := newLAN(t, 1+3*setup.replicas)
			var options []string
			if setup.listen != "" {
				options = []string{"--listen", setup.listen}
			}
			for _, m := range machines {
				m.boot = options
			}
			peers := lanGrid(t, machines, "--slots", "1")
			const steps = 150
			j := machines[0].lasting(t, peers[0], setup.replicas, steps, "40s", options...)
			j.printed("rank 1 step 50 ")
			away := machines[0].lan
			if !setup.submitter {
				away = j.peerOf(peers, "1.0").machine.lan
			}
			away.unplug(30 * time.Second)
			healed := time.Now()
			j.printed("rank 1 step 150 ")
			t.Logf("the last step came %v after the link was back", time.Since(healed))
			expectUnharmed(t, j, steps, peers)
		})
	}
}

// TestLANLinkCutWithoutReplicas unplugs a machine for 8 s in the middle of a job without replicas,
// with default settings. p2prun must report the machine that it waits for, and the job must
// continue.
func TestLANLinkCutWithoutReplicas(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]struct {
		submitter bool // true if the submitter is cut off, not a peer
		says      string
	}{
		"a peer":        {false, "stopped or cut off; waiting up to 30s"},
		"the submitter": {true, "this machine is cut off; waiting up to 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines := newLAN(t, 4)
			peers := lanGrid(t, machines, "--slots", "1")
			const steps = 150
			j := machines[0].lasting(t, peers[0], 1, steps, "")
			j.printed("rank 1 step 50 ")
			away := machines[0].lan
			if !setup.submitter {
				away = j.peerOf(peers, "1.0").machine.lan
			}
			away.unplug(8 * time.Second)
			j.waitFor("the warning", func(e event) bool { return e.Event == "warning" && strings.Contains(e.Text, setup.says) })
			expectUnharmed(t, j, steps, peers)
		})
	}
}

// TestLANChannelsMoveToABetterPath opens the firewalls between peers in the middle of a job whose messages
// pass through a relay. From then on the messages must go directly, and none may be lost.
func TestLANChannelsMoveToABetterPath(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("r=%d", replicas), func(t *testing.T) {
			t.Parallel()
			machines := withoutMDNS(newLAN(t, 1+3*replicas))
			supernode, peers := relayGrid(t, machines)
			const steps = 400
			j := machines[1].lasting(t, supernode, replicas, steps, "20s", "--verbose")
			e := j.waitFor("the channels", func(e event) bool { return e.Event == "channels" })
			for _, r := range e.Routes {
				if r.Kind != "self" && (r.Kind != "stream" || r.Way != "relayed") {
					t.Errorf("got a channel of kind %q, %q; want a relayed stream", r.Kind, r.Way)
				}
			}
			j.printed("rank 1 step 50 ")
			for _, m := range machines[1:] {
				m.lan.admit()
			}
			opened := time.Now()
			e = j.waitFor("a better channel", func(e event) bool {
				return e.Event == "channels" && len(e.Routes) == 1 && e.Routes[0].Kind == "tcp" && e.Routes[0].Way == "direct"
			})
			t.Logf("the first channel became direct %v after the firewalls opened", e.Time.Sub(opened))
			expectUnharmed(t, j, steps, peers)
		})
	}
}
