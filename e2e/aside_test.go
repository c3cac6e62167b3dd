package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	farmTasks = 1500
	farmRuns  = "rank 0 tasks 300 " // printed once the farm is running
)

// farm starts a farm job of three ranks with r replicas each, in which each message depends on an
// outcome.
func (m *machine) farm(t *testing.T, supernode *peerProcess, r, tasks int) *job {
	t.Helper()
	j := m.submit(t, t.TempDir(), "--supernode", supernode.addr, "-n", fmt.Sprint(6/r), "-r", fmt.Sprint(r), "-w", "60", "--timeout", "110s", "--heal", "off",
		filepath.Join(bin, "farm"), "-tasks", fmt.Sprint(tasks), "-every", "10", "-work", "5ms", "-style", "recv")
	j.waitRunning()
	return j
}

// silences returns the longest time during which a job prints nothing, until done is closed.
func (j *job) silences(done <-chan struct{}) (longest time.Duration) {
	last := time.Now()
	for {
		select {
		case <-done:
			return max(longest, time.Since(last))
		case <-j.ended:
			return longest
		case <-time.After(5 * time.Millisecond): // the precision of the measurement
		}
		if w := j.stdout.lastWritten(); w.After(last) {
			longest, last = max(longest, w.Sub(last)), w
		}
	}
}

// isAside reports whether e is a view that sets a process aside or, if want is false, a view that sets none aside.
func isAside(e event, want bool) bool {
	if e.Event != "view" || e.View == nil {
		return false
	}
	aside := false
	for _, since := range e.View.Aside {
		aside = aside || since != 0
	}
	return aside == want
}

// TestR4RankContinuesWithoutASilentReplica silences a replica that is not the master, in a rank that produces
// outcomes continuously. The rank stalls for only a part of the time until the replica fails.
func TestR4RankContinuesWithoutASilentReplica(t *testing.T) {
	t.Parallel()
	cut := func(p *peerProcess) { p.machine.lan.cut() }
	freeze := func(p *peerProcess) { stop(append(processesIn(p.home), p.cmd.Process.Pid)...) }
	for name, c := range map[string]struct {
		r       int
		silence func(*peerProcess)
	}{
		"r=2, cut": {2, cut}, "r=3, cut": {3, cut}, "r=2, frozen": {2, freeze},
	} {
		t.Run(name, func(t *testing.T) {
			machines := newLAN(t, 7)
			peers := lanGrid(t, machines, "--slots", "1")
			j := machines[0].farm(t, peers[0], c.r, farmTasks)
			j.printed(farmRuns)
			c.silence(j.peerOf(peers, "0.1"))
			begun := time.Now()
			failed, stalled := make(chan struct{}), make(chan time.Duration)
			go func() { stalled <- j.silences(failed) }() // ends with the job at the latest
			e := j.waitFor("failure", func(e event) bool { return e.Event == "view" && strings.Contains(e.Text, "replica") })
			close(failed)
			took, longest := e.Time.Sub(begun), <-stalled
			t.Logf("the replica failed after %v, the rank stalled for %v: %.2f of that time", took, longest, longest.Seconds()/took.Seconds())
			if longest > took*2/3 {
				t.Errorf("the rank stalled for %v of the %v until the replica failed", longest, took)
			}
			expectFarm(t, j, 6/c.r, farmTasks)
		})
	}
}

// TestR4ReplicaThatWasSilentTakesOver cuts the link of a replica for less time than it takes to fail the
// replica. Once the view counts the replica again, the peer of its master is killed. The replica must then have
// all outcomes that it missed.
func TestR4ReplicaThatWasSilentTakesOver(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 7)
	peers := lanGrid(t, machines, "--slots", "1")
	j := machines[0].farm(t, peers[0], 2, farmTasks)
	j.printed(farmRuns)
	silent := j.peerOf(peers, "0.1").machine.lan
	silent.cut()
	j.waitFor("view that sets the replica aside", func(e event) bool { return isAside(e, true) })
	silent.heal()
	j.waitFor("view that counts the replica", func(e event) bool { return isAside(e, false) })
	j.peerOf(peers, "0.0").kill()
	expectFarm(t, j, 3, farmTasks)
}

func expectFarm(t *testing.T, j *job, n, tasks int) {
	t.Helper()
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d\n%s", s, tail(j.stderr))
	}
	if err := inOrderOfArrival(j.stdout.String(), n, tasks, 10); err != nil {
		t.Error(err)
	}
}
