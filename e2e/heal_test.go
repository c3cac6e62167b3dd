package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// awaitHealed waits until a rank has a new replica that has caught up, and records where it runs.
func (j *job) awaitHealed(rank int) (process string, took time.Duration) {
	j.t.Helper()
	process, took, _ = j.awaitHealedBy(rank)
	return process, took
}

// awaitHealedBy is like awaitHealed, and also returns the number of messages that were replayed to
// the new replica.
func (j *job) awaitHealedBy(rank int) (process string, took time.Duration, messages int) {
	j.t.Helper()
	e := j.waitFor(fmt.Sprintf("new replica of rank %d", rank), func(e event) bool {
		return e.Event == "heal" && len(e.Placed) == 1 && e.Placed[0].Rank == rank
	})
	p := e.Placed[0]
	process = fmt.Sprintf("%d.%d", p.Rank, p.Replica)
	j.placed[process] = p.Peer
	_, given, _ := strings.Cut(e.Text, " s: ")
	if _, err := fmt.Sscanf(given, "%d message", &messages); err != nil {
		j.t.Fatalf("%q does not state how many messages were replayed", e.Text)
	}
	return process, e.Took, messages
}

var (
	healAt     = flag.Int("heal.at", 25, "step, of 20 ms each, at which a job begins to lose replicas")
	healLosses = flag.Int("heal.losses", 2, "replicas that a job with checkpoints of 100 MiB loses")
)

// TestHeals kills one replica of a rank after the other, each time after the last one has been replaced, and
// also the peer of a new replica. In the end none of the rank's first processes is left, and the answer must be
// right. The rank mostly waits for messages, and a new replica repeats the rank's work so far.
func TestHeals(t *testing.T) {
	t.Parallel()
	peers := grid(t, 5, "--slots", "1")
	steps := *healAt + 975
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", fmt.Sprint(110*time.Second+time.Duration(*healAt)*80*time.Millisecond),
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	begun := time.Now()
	j.printed(fmt.Sprintf("rank 1 step %d ", *healAt))
	live := []string{"1.0", "1.1"}
	for i := range 3 {
		victim, ran := live[i%2], time.Since(begun)
		if i < 2 {
			killProcess(t, j.peerOf(peers, victim), victim, syscall.SIGKILL)
		} else {
			j.peerOf(peers, victim).kill()
		}
		process, took := j.awaitHealed(1)
		live[i%2] = process
		t.Logf("%s replaced %s after %v, in a run of %v, which is %.0f times as long", process, victim,
			took.Round(time.Millisecond), ran.Round(time.Millisecond), ran.Seconds()/took.Seconds())
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, steps, 5)
	if text := j.stderr.String(); !strings.Contains(text, "3 new replicas given to ranks that had lost one") {
		t.Errorf("no summary of the new replicas in:\n%s", text)
	}
	expectNothingLeft(t, peers)
}

// TestHealsUntilAllFirstPeersAreLost kills the peers on which a job began, one after the other,
// each when the last lost process has been replaced. In the end, all voters on the job's views
// except the submitter have joined later, and the answer must be right.
func TestHealsUntilAllFirstPeersAreLost(t *testing.T) {
	t.Parallel()
	peers := grid(t, 8, "--slots", "1")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", "1000", "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	j.printed("rank 1 step 25 ")
	for i, victim := range []string{"0.0", "1.0", "0.1", "1.1"} {
		j.peerOf(peers, victim).kill()
		process, took := j.awaitHealed(i % 2)
		t.Logf("%s replaced %s after %v", process, victim, took.Round(time.Millisecond))
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, 1000, 5)
	expectNothingLeft(t, peers)
}

// TestHealsOnPeersOfTheJob runs a job in which every peer takes part. Two ranks lose a replica with
// each peer that is killed, and each gets a new one on a peer that runs other ranks. In the end
// each of the two remaining peers runs every rank (R7, S4).
func TestHealsOnPeersOfTheJob(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "4")
	const steps = 750
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "4", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	j.printed("rank 1 step 25 ")
	for _, victim := range []string{"0.0", "0.1"} {
		gone, lost := j.peerOf(peers, victim), 0
		gone.kill()
		for process, peer := range j.placed {
			if peer == gone.id {
				delete(j.placed, process)
				lost++
			}
		}
		if lost < 2 {
			t.Fatalf("%d processes are lost: %v", lost, j.placed)
		}
		for range lost {
			e := j.waitFor("new replica", func(e event) bool { return e.Event == "heal" && len(e.Placed) == 1 })
			p := e.Placed[0]
			for process, peer := range j.placed {
				if strings.HasPrefix(process, fmt.Sprint(p.Rank, ".")) && peer == p.Peer {
					t.Errorf("%d.%d is on the peer of %s", p.Rank, p.Replica, process)
				}
			}
			j.placed[fmt.Sprintf("%d.%d", p.Rank, p.Replica)] = p.Peer
			t.Logf("%d.%d replaced a process of peer %s after %v", p.Rank, p.Replica, victim, e.Took.Round(time.Millisecond))
		}
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 4, steps, 5)
	expectNothingLeft(t, peers)
}

// TestHealsOnAReturningPeer runs a job without free slots for a rank that has lost a replica.
// p2prun reports that, until the killed peer has booted again. A second loss soon afterwards is
// replaced as well, on the peer that ran the lost replica.
func TestHealsOnAReturningPeer(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "1")
	const steps = 1250
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	j.printed("rank 1 step 25 ")
	j.peerOf(peers, "1.0").kill()
	j.waitFor("the reason why the rank waits", func(e event) bool {
		return e.Event == "heal" && strings.Contains(e.Text, "rank 1 still lacks a replica: ")
	})
	j.printed("rank 1 step 375 ") // by then, some attempts have failed
	peers = reboot(t, peers)
	ready := time.Now()
	process, _ := j.awaitHealed(1)
	t.Logf("%s runs on the rebooted peer, %v after the peer was ready", process, time.Since(ready).Round(time.Millisecond))
	killProcess(t, j.peerOf(peers, "1.1"), "1.1", syscall.SIGKILL)
	process, took := j.awaitHealed(1)
	t.Logf("%s replaced 1.1 after %v", process, took.Round(time.Millisecond))
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, steps, 5)
	expectNothingLeft(t, peers)
}

// TestHealsFromACheckpoint loses one replica of a rank after the other. The rank's program has 100
// MiB of state and makes checkpoints. A new replica gets the last checkpoint and few messages, and
// the answer must be right.
func TestHealsFromACheckpoint(t *testing.T) {
	t.Parallel()
	peers := grid(t, 5, "--slots", "1")
	steps := 250 * (1 + *healLosses)
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", fmt.Sprint(time.Duration(*healLosses)*55*time.Second),
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "25", "-work", "0s", "-pause", "20ms", "-pacer",
		"-save", "50", "-state", "100")
	j.waitRunning()
	live := []string{"1.0", "1.1"}
	var times []time.Duration
	for i := range *healLosses {
		j.printed(fmt.Sprintf("rank 1 step %d ", 250*(1+i))) // by then, the rank has made more checkpoints
		victim := live[i%2]
		killProcess(t, j.peerOf(peers, victim), victim, syscall.SIGKILL)
		process, took, messages := j.awaitHealedBy(1)
		live[i%2] = process
		times = append(times, took)
		t.Logf("%s replaced %s after %v, with %d messages", process, victim, took.Round(time.Millisecond), messages)
		if messages >= 2*250 { // each step has two messages
			t.Errorf("%d messages were replayed to %s, which has not resumed from a checkpoint", messages, process)
		}
	}
	slices.Sort(times)
	t.Logf("%d losses: median %v, least %v, greatest %v", len(times), times[len(times)/2], times[0], times[len(times)-1])
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, steps, 25)
	expectNothingLeft(t, peers)
}

// healFor is the duration of the job of TestHealsRepeatedly.
var healFor = flag.Duration("heal", 50*time.Second, "run a job for this `DURATION`, and kill one of its processes every 20 s")

// TestHealsRepeatedly kills a process of a random rank every 20 seconds. The process is one of the rank's first
// ones or a replacement. The test expects that every rank has both its replicas in the end. The program makes
// checkpoints.
func TestHealsRepeatedly(t *testing.T) {
	t.Parallel()
	peers := grid(t, 9, "--slots", "1")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "4", "-r", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-for", healFor.String(), "-every", "200", "-work", "0s", "-pause", "10ms", "-pacer",
		"-save", "200", "-state", "10")
	j.bound.Reset(*healFor + 2*limit)
	j.waitRunning()
	live := [][]string{{"0.0", "0.1"}, {"1.0", "1.1"}, {"2.0", "2.1"}, {"3.0", "3.1"}}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	for kills := 1; time.Since(began) < *healFor-25*time.Second; kills++ {
		next := time.After(20 * time.Second)
		rank, k := rnd.IntN(4), rnd.IntN(2)
		victim := live[rank][k]
		killProcess(t, j.peerOf(peers, victim), victim, syscall.SIGKILL)
		process, took, messages := j.awaitHealedBy(rank)
		live[rank][k] = process
		t.Logf("kill %d: %s replaced %s after %v, with %d messages", kills, process, victim, took.Round(time.Millisecond), messages)
		<-next
	}
	for _, process := range slices.Concat(live...) {
		if _, ok := j.peerOf(peers, process).rankProcess(process); !ok {
			t.Errorf("process %s does not run", process)
		}
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	steps := 0
	for line := range strings.Lines(j.stdout.String()) {
		var rank, step int
		if _, err := fmt.Sscanf(line, "rank %d step %d", &rank, &step); err == nil {
			steps = max(steps, step)
		}
	}
	t.Logf("%d steps", steps)
	expectStepper(t, j, 4, steps, 200)
	expectNothingLeft(t, peers)
}
