package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

var idleFor = flag.Duration("idle.for", 4*time.Second, "watch idle peers for this `DURATION`, before a job and after it")

// Limits of an idle peer, whether it has run a job or not: memory in MiB, and processor time in
// percent of one processor. They are many times the usual values on any machine, to detect a peer
// that never rests.
const (
	maxIdle      = 60
	maxIdleShare = 5
)

// TestIdlePeerIsSmall measures a supernode and the five peers that it has introduced, before a job
// has run on all of them and afterwards.
func TestIdlePeerIsSmall(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux, which reports a process's memory")
	}
	t.Parallel()
	supernode := boot(t, "--slots", "1")
	peers := []*peerProcess{supernode}
	for range 5 {
		peers = append(peers, boot(t, "--slots", "1", "--supernode", supernode.addr))
	}
	watch := func(when string) {
		t.Helper()
		var memory []int // in MiB
		before := make([]time.Duration, len(peers))
		for i, p := range peers {
			before[i] = processorTimeOf(t, p.cmd.Process.Pid)
		}
		began := time.Now()
		for each := time.NewTicker(max(time.Second, *idleFor/60)); time.Since(began) < *idleFor; {
			<-each.C
			for _, p := range peers {
				memory = append(memory, p.resident())
			}
		}
		var shares []float64 // percent of one processor
		for i, p := range peers {
			shares = append(shares, 100*float64(processorTimeOf(t, p.cmd.Process.Pid)-before[i])/float64(time.Since(began)))
		}
		slices.Sort(memory)
		slices.Sort(shares)
		last := len(memory) - 1
		t.Logf("%s, %v: %d to %d MiB, in the median %d; %.2f to %.2f %% of a processor", when, *idleFor,
			memory[0], memory[last], memory[last/2], shares[0], shares[len(shares)-1])
		if typical := memory[last/2]; typical == 0 || typical > maxIdle {
			t.Errorf("%s: peers have %d MiB, want at most %d in the median", when, memory, maxIdle)
		}
		if shares[len(shares)-1] > maxIdleShare {
			t.Errorf("%s: peers take %.2f %% of a processor, want at most %d", when, shares, maxIdleShare)
		}
	}
	watch("nothing has run yet")
	j := submit(t, t.TempDir(), "--supernode", supernode.addr, "-n", "6", "-w", "60", filepath.Join(bin, "stepper"), "-steps", "50")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	expectNothingLeft(t, peers)
	watch("a job has run")
}

// resident returns the resident memory of p2pboot in MiB, including mapped files.
func (p *peerProcess) resident() int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	var kib int
	fmt.Sscan(string(rest), &kib)
	return kib >> 10
}
