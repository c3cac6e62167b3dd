package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/mpitest"
)

// expectConformance checks that every test of the suite for n ranks has passed, once in each round.
func expectConformance(t *testing.T, j *job, n, r, rounds int) {
	t.Helper()
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	var want strings.Builder
	count := 0
	for round := range rounds {
		for _, c := range mpitest.Suite() {
			if c.Min <= n && (c.Replicas || r == 1) {
				fmt.Fprintf(&want, "round %d passed: %s\n", round, c.Name)
				count++
			}
		}
	}
	fmt.Fprintln(&want, "tests passed:", count)
	if got := j.stdout.String(); got != want.String() {
		t.Errorf("output:\n%s\nwant:\n%s", got, want.String())
	}
}

// conformanceSizes are the numbers of ranks for which the suite is meant.
var conformanceSizes = []int{1, 2, 3, 4, 7, 8}

// conformanceRuns are the ways to run the suite as processes. Two replicas of a rank never share a peer, and
// only processes on one peer share memory. With r = 2, therefore, only some pairs share memory.
//
//	                       r = 1             r = 2
//	shm                    one peer          two peers, tcp between them
//	tcp                    a peer for each   eight peers at most
//	stream                 a peer for each   eight peers at most
//	self, in one process   mpj.TestConformance, and shm and stream once more
//
// With -full (make conformance) each runs at all sizes, otherwise at some.
var conformanceRuns = []struct {
	name     string
	channels string
	replicas int
	peers    int // number of peers, or 0 for one per rank
	sizes    []int
}{
	{"shm", "shm", 1, 1, []int{1, 8}},
	{"shm and tcp", "shm,tcp", 2, 2, []int{4}},
	{"tcp", "tcp", 1, 0, []int{4, 7}},
	{"tcp", "tcp", 2, 0, []int{2}},
	{"stream", "stream", 1, 0, []int{4}},
	{"stream", "stream", 2, 0, []int{3}},
}

// TestConformance runs the conformance suite as processes, over each channel.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range conformanceRuns {
		sizes, peers := c.sizes, c.peers
		if *full {
			sizes = conformanceSizes
		}
		most := slices.Max(sizes)
		if peers == 0 {
			peers = max(most, c.replicas)
		}
		t.Run(fmt.Sprintf("%s,r=%d", c.name, c.replicas), func(t *testing.T) {
			peers := grid(t, peers, "--slots", strconv.Itoa((most*c.replicas+peers-1)/peers))
			for _, n := range sizes {
				t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
					j := submit(t, peers[0].home, "-n", strconv.Itoa(n), "-r", strconv.Itoa(c.replicas), "-w", "60", "--timeout", "110s",
						"--channels", c.channels, filepath.Join(bin, "conformance"), fmt.Sprintf("-replicated=%v", c.replicas > 1))
					expectConformance(t, j, n, c.replicas, 1)
					expectNothingLeft(t, peers)
				})
			}
		})
	}
}

// TestR2ConformanceSurvivesAKill kills a master in the middle of the suite.
func TestR2ConformanceSurvivesAKill(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "4", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "conformance"), "-replicated", "-rounds", "3")
	j.waitRunning()
	eventually(t, "the first round", func() error {
		if !strings.Contains(j.stdout.String(), "round 0 passed: no source starves") {
			return errors.New("not printed yet")
		}
		return nil
	})
	killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	expectConformance(t, j, 4, 2, 3)
	expectNothingLeft(t, peers)
}
