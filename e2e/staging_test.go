package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The figures in docs/benchmarks.md, section Staging, use larger sizes than CI has time for.
var (
	stagingPeers = flag.Int("staging.peers", 6, "peers in the test of staging over a slow uplink")
	stagingMiB   = flag.Int("staging.mib", 12, "size of the file in that test, and in the test of a killed submitter")
	sitesMiB     = flag.Int("sites.mib", 32, "size of the file in the test of staging at sites")
	sitesMbit    = flag.Int("sites.mbit", 20, "rate of each site's uplink in that test, in Mbit/s")
	stagingMbit  = flag.Int("staging.mbit", 100, "rate of the submitter's link in the test of a slow uplink, in Mbit/s; the peers' links have 1000")
)

// TestLANStagingOverASlowUplink stages a file to many peers from a submitter whose link has a tenth of their
// rate. The file must leave the submitter about once. The duration is meaningful only if the processors, which
// all peers share, are not fully used. The test therefore also logs their use.
func TestLANStagingOverASlowUplink(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, *stagingPeers+1)
	peers := lanGrid(t, machines, "--slots", "1")
	machines[0].lan.slow(*stagingMbit)
	for _, m := range machines[1:] {
		m.lan.slow(1000)
	}
	input, digest := randomFile(t, *stagingMiB<<20)
	before := machines[0].sent(t)
	j := machines[0].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", fmt.Sprint(len(peers)), "-w", "60",
		"-i", input, "sha256sum", strings.TrimPrefix(input, "/"))
	cmds := []*exec.Cmd{j.cmd}
	for _, p := range peers {
		cmds = append(cmds, p.cmd)
	}
	begun := j.waitFor("staging", func(e event) bool { return e.Phase == "staging" }).Time
	computed := processorTime(t, cmds)
	staged := j.waitFor("the end of staging", func(e event) bool { return e.Phase == "starting" }).Time
	computed = processorTime(t, cmds) - computed
	sent := machines[0].sent(t) - before
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	want := strings.Repeat(fmt.Sprintf("%x  %s\n", digest, strings.TrimPrefix(input, "/")), len(peers))
	if got := j.stdout.String(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	size := float64(*stagingMiB << 20)
	took, one := staged.Sub(begun).Seconds(), size*8/(float64(*stagingMbit)*1e6)
	t.Logf("%d MiB to %d peers: %.1f s, of which one copy takes %.1f (%.2f times that); %.2f copies were sent; "+
		"%.1f s of processors, %.0f %% of what %d had",
		*stagingMiB, len(peers), took, one, took/one, float64(sent)/size,
		computed.Seconds(), 100*computed.Seconds()/took/float64(runtime.NumCPU()), runtime.NumCPU())
	if float64(sent) > 1.6*size {
		t.Errorf("the submitter has sent %d bytes for a file of %.0f, more than 1.6 copies", sent, size)
	}
	expectNothingLeft(t, peers)
}

// TestLANStagingAtSites stages a file to peers at sites of two. Their uplinks are as slow as the
// submitter's, which is at a separate site or at one of theirs. The uplinks must carry one copy to
// each other site. That must take about as long as staging the file at one peer there, which the
// same run measures. The peers name their sites.
func TestLANStagingAtSites(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][]int{"the submitter alone": {1, 2, 2, 2}, "the submitter beside two peers": {3, 2, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStagingAtSites(t, sizes)
		})
	}
}

// testStagingAtSites stages from the first machine of the first site to all other machines.
func testStagingAtSites(t *testing.T, sizes []int) {
	t.Helper()
	all := newSites(t, sizes...)
	var away []*machine
	for i, s := range all {
		s.uplink.slow(*sitesMbit)
		for _, m := range s.machines {
			m.env = append(m.env, fmt.Sprintf("P2PMPI_SITE=site-%d", i))
			if i > 0 {
				away = append(away, m)
			}
		}
	}
	submitter, beside := all[0].machines[0], all[0].machines[1:]
	peers := lanGrid(t, append([]*machine{submitter}, away...), "--slots", "1")
	one, _ := stageAtSites(t, submitter, peers[0], all, 1)
	for _, m := range beside {
		p := m.startPeer(t, t.TempDir(), "--supernode", peers[0].addr, "--slots", "1")
		p.awaitReady()
		peers = append(peers, p)
	}
	took, copies := stageAtSites(t, submitter, peers[0], all, len(peers))
	var sum float64
	for _, c := range copies {
		sum += c
	}
	sites := float64(len(all) - 1) // number of sites that a copy has to enter
	t.Logf("%d MiB to %d peers, %d of them beside the submitter, uplinks of %d Mbit/s: %.1f s, one copy to one peer %.1f s (%.2f times that); "+
		"the submitter's uplink carried %.2f copies, all uplinks %.2f (%.2f for each other site)",
		*sitesMiB, len(peers), len(beside), *sitesMbit, took.Seconds(), one.Seconds(), took.Seconds()/one.Seconds(), copies[0], sum, sum/sites)
	if sum > 1.3*sites {
		t.Errorf("the uplinks carried %.2f copies (%.2f), want at most 1.3 for each of %g sites", sum, copies, sites)
	}
	if took > one*14/10 {
		t.Errorf("staging took %.2f times as long as one copy, want at most 1.4", took.Seconds()/one.Seconds())
	}
	expectNothingLeft(t, peers)
}

// stageAtSites runs a job of n processes that stages a new file. It returns the duration of
// staging, and the number of copies of the file that left each site meanwhile.
func stageAtSites(t *testing.T, submitter *machine, supernode *peerProcess, sites []*site, n int) (took time.Duration, copies []float64) {
	t.Helper()
	input, digest := randomFile(t, *sitesMiB<<20)
	before := make([]int64, len(sites))
	for i, s := range sites {
		before[i] = s.uplink.inside.sent(t)
	}
	j := submitter.submit(t, t.TempDir(), "--supernode", supernode.addr, "-n", fmt.Sprint(n), "-w", "60",
		"-i", input, "sha256sum", strings.TrimPrefix(input, "/"))
	begun := j.waitFor("staging", func(e event) bool { return e.Phase == "staging" }).Time
	took = j.waitFor("the end of staging", func(e event) bool { return e.Phase == "starting" }).Time.Sub(begun)
	for i, s := range sites {
		copies = append(copies, float64(s.uplink.inside.sent(t)-before[i])/float64(*sitesMiB<<20))
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	want := strings.Repeat(fmt.Sprintf("%x  %s\n", digest, strings.TrimPrefix(input, "/")), n)
	if got := j.stdout.String(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	return took, copies
}

// TestT2LANStagingAfterTheSubmitterWasKilled kills p2prun in the middle of a file: the next one
// sends only the missing parts.
func TestT2LANStagingAfterTheSubmitterWasKilled(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 3)
	peers := lanGrid(t, machines, "--slots", "1")
	machines[0].lan.slow(40)
	input, digest := randomFile(t, *stagingMiB<<20)
	submit := func() *job {
		return machines[0].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-w", "60",
			"-i", input, "sha256sum", strings.TrimPrefix(input, "/"))
	}
	first := submit()
	size := int64(*stagingMiB << 20)
	there := first.waitFor("a quarter of the file", func(e event) bool { return e.Phase == "staging" && e.Count >= size/2 }).Count // at both peers together
	first.kill()
	eventually(t, "both peers", func() error { return errorsOf(peers, (*peerProcess).idle) })
	before := machines[0].sent(t)
	second := submit()
	if s := second.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	bytes := machines[0].sent(t) - before
	want := strings.Repeat(fmt.Sprintf("%x  %s\n", digest, strings.TrimPrefix(input, "/")), 2)
	if got := second.stdout.String(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	t.Logf("the first submitter was killed after %d bytes of %d had arrived in all; the second sent %.2f of the file",
		there, 2*size, float64(bytes)/float64(size))
	// Both peers may have the same parts. Data in transit may be sent again.
	if most := (size-there/2)*11/10 + 4<<20; bytes > most {
		t.Errorf("the second submitter has sent %d bytes of a file of %d, %d at most were missing", bytes, size, size-there/2)
	}
	expectNothingLeft(t, peers)
}

// TestT2LANLinkCutWhileStaging unplugs a machine for 8 s in the middle of staging, or changes its
// address. It is a peer's machine or the submitter's. No peer may be given up, since there are no
// others.
func TestT2LANLinkCutWhileStaging(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"a peer", "the submitter", "a peer moves"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			machines := newLAN(t, 4)
			peers := lanGrid(t, machines, "--slots", "1")
			machines[0].lan.slow(20)
			input, digest := randomFile(t, *stagingMiB<<20)
			j := machines[0].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-w", "60",
				"-i", input, "sha256sum", strings.TrimPrefix(input, "/"))
			j.waitFor("a part of the file", func(e event) bool { return e.Phase == "staging" && e.Count >= int64(*stagingMiB<<20)/4 })
			switch who {
			case "a peer moves":
				machines[2].changeAddress(t, "10.77.0.99")
			case "a peer":
				machines[2].lan.unplug(8 * time.Second)
			default:
				machines[0].lan.unplug(8 * time.Second)
			}
			healed := time.Now()
			j.waitFor("the end of staging", func(e event) bool {
				if e.Event == "warning" && !strings.Contains(e.Text, "no other peer is known to have free slots") {
					t.Errorf("a warning: %s", e.Text)
				}
				return e.Phase == "starting"
			})
			t.Logf("staged %v after the link was back", time.Since(healed))
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			want := strings.Repeat(fmt.Sprintf("%x  %s\n", digest, strings.TrimPrefix(input, "/")), 3)
			if got := j.stdout.String(); got != want {
				t.Errorf("output %q, want %q", got, want)
			}
			expectNothingLeft(t, peers)
		})
	}
}

func errorsOf(peers []*peerProcess, check func(*peerProcess) error) error {
	for _, p := range peers {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

// processorTime returns the processor time of processes.
func processorTime(t *testing.T, cmds []*exec.Cmd) (sum time.Duration) {
	t.Helper()
	for _, cmd := range cmds {
		sum += processorTimeOf(t, cmd.Process.Pid)
	}
	return sum
}

// processorTimeOf returns the user and system time of a process.
func processorTimeOf(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ, which is 100 on all systems of Go
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// sent returns the number of bytes that have left the machine.
func (m *machine) sent(t *testing.T) int64 {
	t.Helper()
	return m.inside.sent(t)
}

// sent returns the number of bytes that have left the namespace through eth0.
func (ns netns) sent(t *testing.T) (bytes int64) {
	t.Helper()
	err := ns.do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if name, counts, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "eth0" {
				_, err = fmt.Sscan(strings.Fields(counts)[8], &bytes)
				return err
			}
		}
		return fmt.Errorf("no eth0 among the interfaces")
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
