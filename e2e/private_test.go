package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// network runs p2pboot network on a home and returns its output.
func network(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "p2pboot"), append([]string{"network", "--home", home}, args...)...)
	loopback.prepare(cmd, home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("p2pboot network %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// peerOn returns the ID of the future peer on a home.
func peerOn(t *testing.T, home string) string {
	t.Helper()
	id, ok := strings.CutPrefix(strings.Split(network(t, home, "show"), "\n")[0], "peer ")
	if !ok {
		t.Fatal("p2pboot network show does not print the peer's ID")
	}
	return id
}

// A lab is a private network of two peers with one slot each, which use one transport.
type lab struct {
	machine *machine
	owner   string // home of the network's owner
	peers   []*peerProcess
}

func newLab(t *testing.T, listen string) *lab {
	t.Helper()
	m := *loopback
	m.boot = []string{"--listen", listen, "--network", "lab", "--slots", "1"}
	l := &lab{machine: &m, owner: t.TempDir()}
	network(t, l.owner, "create", "lab")
	member := t.TempDir()
	network(t, member, "join", network(t, l.owner, "invite", "--peer", peerOn(t, member)))
	first := l.machine.startPeer(t, l.owner)
	first.awaitReady()
	second := l.machine.startPeer(t, member, "--supernode", first.addr)
	second.awaitReady()
	l.peers = []*peerProcess{first, second}
	return l
}

// submit starts p2prun without a p2pboot on its home.
func (l *lab) submit(t *testing.T, args ...string) *job {
	t.Helper()
	return l.machine.submit(t, t.TempDir(), append([]string{"--listen", l.machine.boot[1], "--supernode", l.peers[0].addr}, args...)...)
}

// tokenFile writes an invitation to a file.
func tokenFile(t *testing.T, invitation string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(invitation+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// labs runs a test over TCP alone and over QUIC alone.
func labs(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Parallel()
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, listen))
		})
	}
}

func TestPrivateNetworkRunsItsMembersJobs(t *testing.T) {
	labs(t, func(t *testing.T, l *lab) {
		j := l.submit(t, "--token", tokenFile(t, network(t, l.owner, "invite")), "-n", "2", "-w", "60",
			filepath.Join(bin, "stepper"), "-steps", "20", "-every", "5")
		if s := j.wait(); s != 0 {
			t.Fatalf("exit status %d", s)
		}
		expectStepper(t, j, 2, 20, 5)
		expectNothingLeft(t, l.peers)
	})
}

func TestPrivateNetworkRefusesOthers(t *testing.T) {
	labs(t, func(t *testing.T, l *lab) {
		other := t.TempDir()
		network(t, other, "create", "lab")
		otherPeer := peerOn(t, t.TempDir())
		for name, try := range map[string]struct {
			args []string
			why  string
		}{
			"no token":      {[]string{"--network", "lab"}, "it belongs to a private network for which this peer has no token; ask the network's owner"},
			"expired":       {[]string{"--token", tokenFile(t, network(t, l.owner, "invite", "--for", "1ms"))}, "this peer's token has expired; ask the network's owner"},
			"another owner": {[]string{"--token", tokenFile(t, network(t, other, "invite"))}, "or to one with the same name and another owner; ask the network's owner"},
			"another peer":  {[]string{"--token", tokenFile(t, network(t, l.owner, "invite", "--peer", otherPeer))}, "the token is bound to peer " + otherPeer},
		} {
			j := l.submit(t, append(try.args, "-n", "1", "-w", "1", filepath.Join(bin, "ring"))...)
			if s := j.wait(); s != 69 {
				t.Errorf("%s: exit status %d, want 69", name, s)
			}
			var message string
			for e := range j.events {
				if e.Result != nil {
					message = e.Result.Message
				}
			}
			if !strings.Contains(message, try.why) {
				t.Errorf("%s: got %q, want %q", name, message, try.why)
			}
		}
		stranger := l.machine.startPeer(t, t.TempDir(), "--supernode", l.peers[0].addr)
		stranger.awaitReady()
		eventually(t, "the stranger's log", logged(stranger, l.peers[0].id+" refuses this one: it belongs to a private network"))
		eventually(t, "the member's log", logged(l.peers[0], "this peer refuses "+stranger.id+": it has no token"))
		s, err := stranger.status()
		if err != nil || len(s.Connections) > 0 {
			t.Errorf("the stranger has connections: %+v, %v", s.Connections, err)
		}
		expectNothingLeft(t, l.peers)
	})
}

func logged(p *peerProcess, text string) func() error {
	return func() error {
		if !strings.Contains(p.log.String(), text) {
			return fmt.Errorf("the log does not contain %q", text)
		}
		return nil
	}
}

// TestPrivateNetworkAcceptsANewTokenWithoutARestart checks that a peer whose token has expired is
// admitted again once its owner has joined with a new one.
func TestPrivateNetworkAcceptsANewTokenWithoutARestart(t *testing.T) {
	labs(t, func(t *testing.T, l *lab) {
		home := t.TempDir()
		expired := network(t, l.owner, "invite", "--for", "1ms", "--peer", peerOn(t, home))
		folder := filepath.Join(home, "networks", "lab")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "token"), []byte(expired), 0o600); err != nil {
			t.Fatal(err)
		}
		p := l.machine.startPeer(t, home, "--supernode", l.peers[0].addr)
		p.awaitReady()
		eventually(t, "the peer's log", logged(p, "this peer's token has expired"))
		network(t, home, "join", network(t, l.owner, "invite", "--peer", p.id))
		eventually(t, "the peer is admitted", func() error {
			s, err := p.status()
			if err == nil && len(s.Connections) == 0 {
				err = errors.New("the peer has no connections")
			}
			return err
		})
	})
}

// TestReplicasGoToDifferentOwners checks that a person with two invitations from the network's
// owner counts as one owner, whatever their peers claim. In an open network, the peers' claims
// count. All peers are on this machine, so they differ only in their owners.
func TestReplicasGoToDifferentOwners(t *testing.T) {
	t.Parallel()
	t.Run("private", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		network(t, home, "create", "lab")
		m := *loopback
		m.boot = []string{"--listen", "/ip4/127.0.0.1/tcp/0", "--network", "lab"}
		first := m.startPeer(t, home, "--slots", "0")
		first.awaitReady()
		var peers []*peerProcess
		for i, name := range []string{"alice", "alice", "bob"} {
			member := t.TempDir()
			network(t, member, "join", network(t, home, "invite", "--name", name, "--peer", peerOn(t, member)))
			peers = append(peers, m.startPeer(t, member, "--slots", "2", "--owner", fmt.Sprint("liar-", i), "--supernode", first.addr))
		}
		expectOwners(t, peers, true, "--token", tokenFile(t, network(t, home, "invite")), "--listen", m.boot[1], "--supernode", first.addr)
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		first := boot(t, "--slots", "0")
		var peers []*peerProcess
		for _, name := range []string{"alice", "alice", "bob"} {
			peers = append(peers, loopback.startPeer(t, t.TempDir(), "--slots", "2", "--owner", name, "--supernode", first.addr))
		}
		expectOwners(t, peers, false, "--supernode", first.addr)
	})
}

// expectOwners expects that a job of two ranks has one replica of each rank at bob's only peer, which is
// the last one. The job's events must contain the owners of the peers.
func expectOwners(t *testing.T, peers []*peerProcess, verified bool, args ...string) {
	t.Helper()
	for _, p := range peers {
		p.awaitReady()
	}
	j := submit(t, t.TempDir(), append(args, "--dry-run", "-n", "2", "-r", "2", "-w", "60", "--peer", peers[0].id, "--peer", peers[1].id, "--peer", peers[2].id, filepath.Join(bin, "ring"))...)
	planned := j.waitFor("the plan", func(e event) bool { return len(e.Planned) > 0 }).Planned
	atBob := 0
	for _, p := range planned {
		want := "alice"
		if p.Peer == peers[2].id {
			want, atBob = "bob", len(p.Processes)
		}
		if p.Domain.Owner != want || p.Domain.Verified != verified {
			t.Errorf("peer %s has the domain %+v, want %s", p.Peer, p.Domain, want)
		}
	}
	if atBob != 2 {
		t.Errorf("%d processes at bob's peer, want one replica of each of two ranks: %+v", atBob, planned)
	}
	if s := j.wait(); s != 0 {
		t.Errorf("exit status %d, on %+v", s, planned)
	}
}
