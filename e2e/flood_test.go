package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// floodSum is the output of flood with 512 MiB: the sum of the messages' numbers.
const floodSum = "rank 1 sum 33550336\n"

// floodLosses are losses while rank 0 waits for rank 1, which receives nothing yet.
var floodLosses = []loss{
	{"nothing", func(*testing.T, *job, []*peerProcess) {}},
	{"the sending master killed", func(t *testing.T, j *job, peers []*peerProcess) {
		killProcess(t, j.peerOf(peers, "0.0"), "0.0", syscall.SIGKILL)
	}},
	{"the receiving master stopped permanently", func(t *testing.T, j *job, peers []*peerProcess) {
		killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGSTOP)
	}},
	{"a receiving replica stopped permanently", func(t *testing.T, j *job, peers []*peerProcess) {
		killProcess(t, j.peerOf(peers, "1.1"), "1.1", syscall.SIGSTOP)
	}},
}

// TestR3Flood sends much more data than the receiving program accepts at first. Neither rank may
// store all of it, and both must continue, whatever is lost.
func TestR3Flood(t *testing.T) {
	t.Parallel()
	for _, c := range floodLosses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "flood"), "-mib", "512", "-quiet", "3s")
			j.waitRunning()
			j.printed("rank 0 sends\n")
			c.lose(t, j, peers)
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			if got := j.stdout.String(); strings.Count(got, floodSum) != 1 {
				t.Errorf("got %q, want %q once", got, floodSum)
			}
			wake(peers)
			expectNothingLeft(t, peers)
		})
	}
}
