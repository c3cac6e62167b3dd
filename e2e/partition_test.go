package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
)

// part cuts off the machines with these numbers from all others, without an error. The machines on
// each side can still reach each other.
func part(network *ether.Switch, machines int, away ...int) (heal func()) {
	set := func(link ether.Link) {
		for from := range machines {
			for to := range machines {
				if slices.Contains(away, from) != slices.Contains(away, to) {
					network.Set(from, to, link)
				}
			}
		}
	}
	set(ether.Link{Cut: true})
	return func() { set(ether.Link{}) }
}

// numberOf returns the number of the machine on which a process of the job runs.
func numberOf(j *job, machines []*machine, peers []*peerProcess, process string) int {
	return slices.Index(machines, j.peerOf(peers, process).machine)
}

// expectStepperBegins expects that the output of a stopped job is a prefix of the right output, at
// every rank.
func expectStepperBegins(t *testing.T, j *job, n, steps, every int) {
	t.Helper()
	want := make(map[string][]string)
	rankOf := func(line string) string { return strings.SplitN(line, " step", 2)[0] }
	for _, line := range stepperOutput(n, steps, every) {
		want[rankOf(line)] = append(want[rankOf(line)], line)
	}
	for line := range strings.Lines(j.stdout.String()) {
		line = strings.TrimSuffix(line, "\n")
		rank := rankOf(line)
		if left := want[rank]; len(left) == 0 || left[0] != line {
			t.Fatalf("p2prun printed %q, want %q", line, left[:min(len(left), 1)])
		}
		want[rank] = want[rank][1:]
	}
}

// TestV2SubmitterInTheMinority cuts off the submitter from most of the job's peers. p2prun must report that and
// end with the right status, and all peers that it can reach must end their processes. The other side must not
// continue either, because the user would not get the result. After the partition, the job stays ended.
func TestV2SubmitterInTheMinority(t *testing.T) {
	t.Parallel()
	for name, with := range map[string][]string{"alone": nil, "with one peer": {"0.0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 7)
			peers := lanGrid(t, machines, "--slots", "1")
			j := machines[0].steady(t, peers[0], 5000, "--away", "0")
			j.printed("rank 1 step 100 ")
			away := []int{0}
			for _, process := range with {
				away = append(away, numberOf(j, machines, peers, process))
			}
			cut := time.Now()
			heal := part(network, len(machines), away...)
			if s := j.wait(); s != 70 {
				t.Errorf("exit status %d, want 70", s)
			}
			t.Logf("p2prun ended %v after the cut", time.Since(cut))
			if text := strings.Join(strings.Fields(j.stderr.String()), " "); !strings.Contains(text, "cut off from the majority of the job's peers") {
				t.Errorf("the reason is not in:\n%s", text)
			}
			expectNothingLeft(t, peers)
			t.Logf("all peers have all slots back %v after the cut", time.Since(cut))
			heal()
			expectStepperBegins(t, j, 3, 5000, 50)
			expectNothingLeft(t, peers)
		})
	}
}

// TestV2SubmitterInTheMajority cuts off two peers from the submitter and the others. The job must
// continue there, and the two peers must end their processes by themselves.
func TestV2SubmitterInTheMajority(t *testing.T) {
	t.Parallel()
	machines, network := newEther(t, 1, 7)
	peers := lanGrid(t, machines, "--slots", "1")
	j := machines[0].steady(t, peers[0], 400)
	j.printed("rank 1 step 100 ")
	heal := part(network, len(machines), numberOf(j, machines, peers, "0.0"), numberOf(j, machines, peers, "1.1"))
	cut := time.Now()
	for _, process := range []string{"0.0", "1.1"} {
		eventually(t, "the peer that was cut off", j.peerOf(peers, process).idle)
	}
	t.Logf("the peers that were cut off have all slots back %v after the cut", time.Since(cut))
	expectSteady(t, j, 400)
	heal()
	expectNothingLeft(t, peers)
}

// awaitMoreOutput waits until a reconnected submitter gets output of its job.
func (j *job) awaitMoreOutput() {
	j.t.Helper()
	since, printed := time.Now(), len(j.stdout.String())
	eventually(j.t, "more output", func() error {
		if len(j.stdout.String()) == printed {
			return errors.New("none")
		}
		return nil
	})
	j.t.Logf("more output %v after the cut ended", time.Since(since))
}

// awaitSilentSubmitter waits until the peer has found the submitter of its job silent.
func (p *peerProcess) awaitSilentSubmitter() {
	p.t.Helper()
	eventually(p.t, "peer "+p.id, func() error {
		if !strings.Contains(p.log.String(), "the submitter is unreachable") {
			return errors.New("the peer still reaches the submitter")
		}
		return nil
	})
}

// TestSubmitterCutOffTemporarily unplugs the submitter's machine for longer than the detection of a
// silent peer takes. The job must continue without the submitter, which must then reconnect.
func TestSubmitterCutOffTemporarily(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"two peers": {"--slots", "3"}, "six peers": {"--slots", "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := 6
			if name == "two peers" {
				count = 2
			}
			machines, network := newEther(t, 1, 1+count)
			peers := lanGrid(t, machines, args...)
			j := machines[0].steady(t, peers[0], 500)
			j.printed("rank 1 step 100 ")
			heal := part(network, len(machines), 0)
			time.Sleep(4 * time.Second) // the time under test
			heal()
			healed := time.Now()
			j.awaitMoreOutput()
			expectSteady(t, j, 500)
			t.Logf("the job ended %v after the cut", time.Since(healed))
			expectNoFailure(t, j)
			expectNothingLeft(t, peers)
		})
	}
}

// TestSubmitterUnplugged unplugs the submitter's machine for much longer than the tolerated
// silence. The job must continue without the submitter. Once reconnected, the submitter gets the missed
// output, exactly once. Meanwhile the slots of ended processes are free.
func TestSubmitterUnplugged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away    time.Duration
		steps   int
		every   int           // steps per line
		pause   time.Duration // in each step
		options []string
		over    bool // the job ends before the submitter reconnects
		kill    bool // a peer is killed during the cut
	}{
		"the job still runs":                  {away: 15 * time.Second, steps: 500, every: 50, pause: 50 * time.Millisecond},
		"the job is over":                     {away: 15 * time.Second, steps: 400, every: 50, pause: 20 * time.Millisecond, over: true},
		"the job has lost a peer and is over": {away: 15 * time.Second, steps: 400, every: 50, pause: 20 * time.Millisecond, over: true, kill: true},
		// Connections break by themselves, and no process is found silent.
		"more silence is tolerated": {away: 45 * time.Second, steps: 60, every: 5, pause: time.Second, options: []string{"--tolerated-hang", "2m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 7)
			peers := lanGrid(t, machines, "--slots", "1")
			j := machines[0].paced(t, peers[0], c.steps, c.every, c.pause, c.options...)
			j.printed(fmt.Sprintf("rank 1 step %d ", c.every))
			heal := part(network, len(machines), 0)
			cut := time.Now()
			if c.kill {
				for _, p := range peers {
					p.awaitSilentSubmitter()
				}
				j.peerOf(peers, "1.0").kill()
			}
			if c.over {
				for _, p := range peers {
					if p.alive() {
						eventually(t, "slots", p.unused)
					}
				}
				t.Logf("slots are free %v after the cut", time.Since(cut))
			}
			time.Sleep(time.Until(cut.Add(c.away))) // the time under test
			heal()
			healed := time.Now()
			j.awaitMoreOutput()
			expectPaced(t, j, c.steps, c.every)
			t.Logf("the job ended %v after the cut", time.Since(healed))
			if !c.kill {
				expectNoFailure(t, j)
			}
			expectNothingLeft(t, peers)
		})
	}
}

// TestSubmitterUnpluggedReportsTheExitStatus unplugs the submitter's machine until the program has ended
// with different statuses.
func TestSubmitterUnpluggedReportsTheExitStatus(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"-exit", "-abort"} {
		t.Run(how[1:], func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 5)
			peers := lanGrid(t, machines, "--slots", "1")
			j := machines[0].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "stepper"), how, "5", "-steps", "800", "-work", "0", "-pause", "20ms")
			j.waitRunning()
			j.printed("rank 1 step 50 ")
			heal := part(network, len(machines), 0)
			for _, p := range peers {
				eventually(t, "slots", p.unused)
			}
			j.waitFor("the report of the cut", func(e event) bool { return strings.Contains(e.Text, "cut off from the majority") })
			heal()
			if s := j.wait(); s != 5 {
				t.Errorf("exit status %d, want 5", s)
			}
			expectNothingLeft(t, peers)
		})
	}
}

// TestS4SubmitterCancelsWhileCutOff cancels a job while no peer can be reached. Peers that can be
// reached soon afterwards must end the job, and p2prun must report the others.
func TestS4SubmitterCancelsWhileCutOff(t *testing.T) {
	t.Parallel()
	for name, soon := range map[string]bool{"mended soon": true, "mended too late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 5)
			peers := lanGrid(t, machines, "--slots", "1")
			away := "1h"
			if !soon {
				away = "10s"
			}
			j := machines[0].submit(t, t.TempDir(), append([]string{"--supernode", peers[0].addr, "-w", "60", "--away", away}, stepperArgs(2, 1000000)...)...)
			j.waitRunning()
			j.printed("rank 1 step 50 ")
			heal := part(network, len(machines), 0)
			j.waitFor("the report of the cut", func(e event) bool { return strings.Contains(e.Text, "cut off from the majority") })
			j.cmd.Process.Signal(syscall.SIGINT)
			j.waitFor("the report that peers cannot be notified", func(e event) bool { return strings.Contains(e.Text, "trying for") })
			if soon {
				heal()
			}
			if s := j.wait(); s != 130 {
				t.Errorf("exit status %d, want 130", s)
			}
			if said := strings.Contains(j.stderr.String(), "4 peers could not be told"); said == soon {
				t.Errorf("4 peers could not be told: printed %v", said)
			}
			heal()
			expectNothingLeft(t, peers)
		})
	}
}

// TestSubmitterFrozen stops p2prun, like a suspended machine, in two cases. In one case, p2prun is stopped for
// longer than the peers need to continue without it. In the other, it is stopped until they have dropped its
// connections. Nothing tells p2prun how long it was stopped.
func TestSubmitterFrozen(t *testing.T) {
	t.Parallel()
	for long, steps := range map[time.Duration]int{5 * time.Second: 500, 18 * time.Second: 500, 50 * time.Second: 600} {
		t.Run(long.String(), func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			j := loopback.paced(t, peers[0], steps, 50, 50*time.Millisecond)
			j.printed("rank 1 step 50 ")
			j.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(long) // the time under test
			j.cmd.Process.Signal(syscall.SIGCONT)
			expectSteady(t, j, steps)
			expectNoFailure(t, j)
			expectNothingLeft(t, peers)
		})
	}
}

// TestRecruitsSurviveACut unplugs the submitter's machine after a peer was lost and replaced. The
// replacement must continue like the other peers.
func TestRecruitsSurviveACut(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"briefly": 3 * time.Second, "for long": 15 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 8)
			peers := lanGrid(t, machines, "--slots", "1")
			j := machines[0].paced(t, peers[0], 600, 50, 50*time.Millisecond)
			j.printed("rank 1 step 50 ")
			j.peerOf(peers, "1.0").kill()
			recruit, took := j.awaitHealed(1)
			t.Logf("%s replaced the lost replica after %v", recruit, took)
			heal := part(network, len(machines), 0)
			time.Sleep(away) // the time under test
			heal()
			expectSteady(t, j, 600)
			expectNoFailure(t, j)
			expectNothingLeft(t, peers)
		})
	}
}

// TestPeersOfAResumedJobTolerateALinkFailure cuts the link between two peers, when peers vote on
// views without their submitter. The other peers can reach both of them, and form a majority with
// either.
func TestPeersOfAResumedJobTolerateALinkFailure(t *testing.T) {
	t.Parallel()
	for _, link := range [][2]string{{"0.0", "0.1"}, {"0.2", "0.3"}} { // the leader is at an end of one of these
		t.Run(link[0]+" and "+link[1], func(t *testing.T) {
			t.Parallel()
			machines, network := newEther(t, 1, 5)
			peers, home := lanGrid(t, machines, "--slots", "2"), t.TempDir()
			first := machines[0].submit(t, home, "--supernode", peers[0].addr, "-n", "2", "-r", "4", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "stepper"), "-steps", "700", "-every", "50", "-work", "0", "-pause", "20ms")
			first.waitFor("the kept event", func(e event) bool { return e.Event == "kept" })
			first.printed("rank 1 step 50 ")
			first.kill()
			second := machines[0].startJob(t, "--home", home, "--json", "--attach")
			second.printed("rank 1 step 150 ")
			a, b := numberOf(first, machines, peers, link[0]), numberOf(first, machines, peers, link[1])
			for _, state := range []ether.Link{{Cut: true}, {}} {
				network.Set(a, b, state)
				network.Set(b, a, state)
				if state.Cut {
					time.Sleep(5 * time.Second) // the time under test: TCP's retransmissions arrive after six
				}
			}
			if s := second.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectWhole(t, stepperOutput(2, 700, 50), first, second)
			expectNoFailure(t, second)
			expectNothingLeft(t, peers)
		})
	}
}

// TestTwoMachinesAndTheSubmitter runs a job of two ranks with two replicas each on two machines. It
// takes either machine away, or kills the submitter and resumes the job.
func TestTwoMachinesAndTheSubmitter(t *testing.T) {
	t.Parallel()
	for _, replica := range []int{0, 1} {
		t.Run(fmt.Sprintf("the machine of replica %d", replica), func(t *testing.T) {
			t.Parallel()
			machines := newLAN(t, 3)
			peers := lanGrid(t, machines, "--slots", "2")
			j := machines[0].submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "stepper"), "-steps", "300", "-every", "50", "-work", "0", "-pause", "20ms")
			j.waitRunning()
			j.printed("rank 1 step 100 ")
			away := j.peerOf(peers, fmt.Sprintf("0.%d", replica))
			away.machine.lan.cut()
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 2, 300, 50)
			expectNothingLeft(t, peers)
		})
	}
	t.Run("the submitter", func(t *testing.T) {
		t.Parallel()
		peers, home := grid(t, 2, "--slots", "2"), t.TempDir()
		first := keep(t, home, peers, stepperArgs(2, 300)...)
		first.printed("rank 1 step 100 ")
		first.kill()
		second := attach(t, home)
		if s := second.wait(); s != 0 {
			t.Fatalf("exit status %d", s)
		}
		expectWhole(t, stepperOutput(2, 300, 50), first, second)
		expectNothingLeft(t, peers)
	})
}
