package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gridOn boots a peer on each machine but the first. The first runs a supernode, which is killed once all
// peers have been introduced.
func gridOn(t *testing.T, machines []*machine, args func(i int) []string) []*peerProcess {
	t.Helper()
	supernode := machines[0].startPeer(t, t.TempDir(), "--slots", "0")
	supernode.awaitReady()
	var peers []*peerProcess
	for i, m := range machines[1:] {
		peers = append(peers, m.startPeer(t, t.TempDir(), append([]string{"--supernode", supernode.addr}, args(i)...)...))
	}
	for _, p := range peers {
		p.awaitReady()
	}
	supernode.kill()
	return peers
}

// lanGrid boots a peer on each machine but the first, with one supernode, as grid does.
func lanGrid(t *testing.T, machines []*machine, args ...string) []*peerProcess {
	t.Helper()
	return gridOn(t, machines, func(int) []string { return args })
}

// withoutMDNS disables mDNS on machines, for tests of their introduction.
func withoutMDNS(machines []*machine) []*machine {
	for _, m := range machines {
		m.env = append(m.env, "P2PMPI_MDNS=false")
	}
	return machines
}

// steady submits a job of three ranks with two replicas each, with steps of 20 ms or more.
func (m *machine) steady(t *testing.T, supernode *peerProcess, steps int, options ...string) *job {
	t.Helper()
	return m.paced(t, supernode, steps, 50, 20*time.Millisecond, options...)
}

// paced is like steady, with a different pause in each step and a line after each group of every steps. A
// step takes the same processor time whatever its pause, so a long job should have few steps with
// long pauses.
func (m *machine) paced(t *testing.T, supernode *peerProcess, steps, every int, pause time.Duration, options ...string) *job {
	t.Helper()
	args := append([]string{"--supernode", supernode.addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s"}, options...)
	j := m.submit(t, t.TempDir(), append(args,
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", fmt.Sprint(every), "-work", "0", "-pause", pause.String())...)
	j.waitRunning()
	return j
}

// expectSteady expects that the job ends with the right answer.
func expectSteady(t *testing.T, j *job, steps int) {
	t.Helper()
	expectPaced(t, j, steps, 50)
}

// expectPaced expects the same of a job that prints a line after each group of every steps.
func expectPaced(t *testing.T, j *job, steps, every int) {
	t.Helper()
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 3, steps, every)
}

// expectNoFailure expects that p2prun reports no failed process until it ends (V3).
func expectNoFailure(t *testing.T, j *job) {
	t.Helper()
	for e := range j.events {
		if e.Event == "view" && e.Text != "" {
			t.Errorf("false failure: %s", e.Text)
		}
	}
}

// TestLANWithoutConfiguration boots peers on three machines without any configuration, and submits
// a job the same way.
func TestLANWithoutConfiguration(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 3)
	var peers []*peerProcess
	for _, m := range machines {
		peers = append(peers, m.startPeer(t, t.TempDir(), "--slots", "1"))
	}
	for _, p := range peers {
		p.awaitReady()
	}
	for name, home := range map[string]string{"client of a peer": peers[0].home, "submit-only peer": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			j := machines[0].submit(t, home, "-n", "3", "-w", "60", filepath.Join(bin, "stepper"), "-steps", "20")
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 3, 20, 10)
			expectNoFailure(t, j)
			expectNothingLeft(t, peers)
		})
	}
}

// TestLANLinkCutPermanently unplugs the machine of a master permanently in the middle of a job. No
// packet reports that: gossip must detect it on both sides. The unplugged machine must end its
// processes by itself.
func TestLANLinkCutPermanently(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 7)
	peers := lanGrid(t, machines, "--slots", "1")
	j := machines[0].steady(t, peers[0], 300)
	j.printed("rank 1 step 100 ")
	away := j.peerOf(peers, "0.0")
	away.machine.lan.cut()
	cut := time.Now()
	e := j.waitFor("the new view", func(e event) bool { return e.Event == "view" })
	t.Logf("new view %v after the cut", e.Time.Sub(cut))
	eventually(t, "the unplugged peer", away.idle)
	t.Logf("the unplugged peer has all slots back %v after the cut", time.Since(cut))
	expectSteady(t, j, 300)
	expectNothingLeft(t, peers)
}

// TestLANManyPeersBehindOneAddress runs ten peers that share an address, as behind one router, and
// a job that needs all of them.
func TestLANManyPeersBehindOneAddress(t *testing.T) {
	t.Parallel()
	machines := withoutMDNS(newLAN(t, 3))
	behind := machines[:2:2]
	for range 9 {
		behind = append(behind, machines[1])
	}
	peers := lanGrid(t, behind, "--slots", "1")
	j := machines[2].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "5", "-r", "2", "-w", "60", "--timeout", "60s",
		filepath.Join(bin, "stepper"), "-steps", "50")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 5, 50, 10)
	expectNoFailure(t, j)
	expectNothingLeft(t, peers)
}

// TestV3LANSlowLink stages 20 MB to every machine. One of them is behind a link of 10 Mbit/s, which
// also carries the heartbeats of another job of the same submitter.
func TestV3LANSlowLink(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 6)
	machines[1].lan.slow(10)
	submitter := machines[0].startPeer(t, t.TempDir(), "--slots", "0")
	submitter.awaitReady()
	peers := lanGrid(t, machines, "--slots", "3", "--supernode", submitter.addr)
	input, digest := randomFile(t, 20<<20)

	long := machines[0].submit(t, submitter.home, "-n", "3", "-r", "2", "-w", "60", filepath.Join(bin, "stepper"), "-steps", "1000000", "-work", "0", "-pause", "20ms")
	long.waitRunning()
	j := machines[0].submit(t, submitter.home, "-n", "5", "-w", "60", "-i", input, "sha256sum", strings.TrimPrefix(input, "/"))
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	want := strings.Repeat(fmt.Sprintf("%x  %s\n", digest, strings.TrimPrefix(input, "/")), 5)
	if got := j.stdout.String(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	long.cmd.Process.Signal(syscall.SIGINT)
	if s := long.wait(); s != 130 {
		t.Errorf("the other job ended with status %d, want 130", s)
	}
	expectNoFailure(t, j)
	expectNoFailure(t, long)
	expectNothingLeft(t, peers)
}

func randomFile(t *testing.T, size int) (path string, digest [sha256.Size]byte) {
	t.Helper()
	data := make([]byte, size)
	rand.Read(data)
	path = filepath.Join(t.TempDir(), "input.bin")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, sha256.Sum256(data)
}

// TestV3LANPacketLoss makes one machine lose 5 % of all packets for a while.
func TestV3LANPacketLoss(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 7)
	peers := lanGrid(t, machines, "--slots", "1")
	machines[1].lan.lossy(5)
	start := time.Now()
	j := machines[0].steady(t, peers[1], 400)
	expectSteady(t, j, 400)
	t.Logf("the job took %v", time.Since(start))
	expectNoFailure(t, j)
	expectNothingLeft(t, peers)
}

// TestV3LANLinkCutForASecond unplugs a machine in the middle of a job and reconnects it.
func TestV3LANLinkCutForASecond(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 7)
	peers := lanGrid(t, machines, "--slots", "1")
	j := machines[0].steady(t, peers[0], 250)
	j.printed("rank 1 step 100 ")
	away := j.peerOf(peers, "0.0").machine.lan
	away.cut()
	time.Sleep(time.Second) // the time under test
	away.heal()
	expectSteady(t, j, 250)
	expectNoFailure(t, j)
	expectNothingLeft(t, peers)
}
