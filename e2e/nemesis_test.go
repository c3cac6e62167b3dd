package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	nemesisTime = flag.Duration("nemesis.time", 20*time.Second, "how long TestNemesis begins new jobs")
	nemesisSeed = flag.Uint64("nemesis.seed", 0, "of TestNemesis; 0 for a new one")
)

// A nemesis takes things away from jobs at random, but leaves every rank a
// replica: each job must succeed, with the right answer, and leave nothing.
type nemesis struct {
	t     *testing.T
	rnd   *rand.Rand
	peers []*peerProcess
	gone  map[*peerProcess]bool // killed, or stopped for good

	job  *job
	n, r int
	lost map[string]bool // processes of the job, apart from those of peers that are gone
	done []string        // strikes, for whoever looks for the reason
}

// TestNemesis is the same with the same seed only as far as the machine is.
func TestNemesis(t *testing.T) {
	seed := *nemesisSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-nemesis.seed=%d", seed)
	m := &nemesis{
		t: t, rnd: rand.New(rand.NewPCG(seed, 0)), peers: grid(t, 7, "--slots", "2"),
		gone: make(map[*peerProcess]bool),
	}
	jobs := 0
	for end := time.Now().Add(*nemesisTime); time.Now().Before(end); jobs++ {
		m.battle()
		m.recover()
	}
	t.Logf("%d jobs", jobs)
}

// battle runs one job and strikes at it.
func (m *nemesis) battle() {
	m.n, m.r = 2+m.rnd.IntN(3), 2+m.rnd.IntN(2)
	m.lost, m.done = make(map[string]bool), nil
	program, check := m.program()
	supernode := pick(m.rnd, m.peers...)
	args := append([]string{"--supernode", supernode.addr, "-n", strconv.Itoa(m.n), "-r", strconv.Itoa(m.r), "-w", "60", "--timeout", "100s"}, program...)
	m.job = submit(m.t, m.t.TempDir(), args...)
	if m.rnd.IntN(3) == 0 {
		phase := pick(m.rnd, "reserving", "staging", "starting")
		m.job.waitFor(phase, func(e event) bool { return e.Phase == phase })
		m.strikeUnplaced(phase, supernode)
	}
	m.job.waitRunning()
	for i := range m.rnd.IntN(5) {
		if i > 0 {
			m.awaitOutput()
		}
		m.strike()
	}
	what := fmt.Sprintf("%v after %q", args, m.done)
	if s := m.job.wait(); s != 0 {
		m.t.Fatalf("%s: exit status %d", what, s)
	}
	if err := check(m.job.stdout.String()); err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
}

// program returns a command line and the check of its output.
func (m *nemesis) program() ([]string, func(out string) error) {
	n := m.n
	switch m.rnd.IntN(3) {
	case 0:
		return []string{filepath.Join(bin, "stepper"), "-steps", "150", "-every", "10", "-work", "2ms"}, func(out string) error {
			return samePerRank(out, stepperOutput(n, 150, 10))
		}
	case 1:
		return []string{filepath.Join(bin, "rude"), "init", "barrier", "lines=20000", "barrier", "finalize"}, func(out string) error {
			return samePerRank(out, floodOutput(n, 20000))
		}
	}
	style := pick(m.rnd, "recv", "probe", "iprobe", "test", "waitany", "mixed")
	size := pick(m.rnd, "2", "100", "20000")
	return []string{filepath.Join(bin, "farm"), "-tasks", "300", "-every", "20", "-style", style, "-size", size}, func(out string) error {
		return oneOrder(out, n, 300/20)
	}
}

func pick[T any](rnd *rand.Rand, choices ...T) T { return choices[rnd.IntN(len(choices))] }

// strikeUnplaced kills a peer that the job may be about to use, or not. The one
// that introduces the submitter is left alone.
func (m *nemesis) strikeUnplaced(phase string, supernode *peerProcess) {
	p := pick(m.rnd, m.peers...)
	if p == supernode {
		return
	}
	m.note("%s: kill peer %s", phase, p.id)
	m.gone[p] = true
	p.kill()
}

// strike does one thing to one peer or process of the job.
func (m *nemesis) strike() {
	process := fmt.Sprintf("%d.%d", m.rnd.IntN(m.n), m.rnd.IntN(m.r))
	p := m.job.peerOf(m.peers, process)
	if m.gone[p] || m.lost[process] {
		return
	}
	switch kind := m.rnd.IntN(8); {
	case kind == 0:
		m.note("pause peer of %s", process)
		m.pause(p.cmd.Process.Pid, time.Second)
	case kind == 1:
		m.note("pause process %s", process)
		m.pause(m.pid(p, process), 3*time.Second)
	case kind <= 3:
		if m.gone[p] = true; !m.survivable() {
			delete(m.gone, p)
			return
		}
		how := pick(m.rnd, syscall.SIGKILL, syscall.SIGSTOP)
		m.note("%v to peer of %s", how, process)
		p.signal(how)
	default:
		if m.lost[process] = true; !m.survivable() {
			delete(m.lost, process)
			return
		}
		pid, whom := m.pid(p, process), "process"
		if kind >= 6 {
			pid, whom = parentOf(pid), "supervisor of"
		}
		how := pick(m.rnd, syscall.SIGKILL, syscall.SIGSTOP)
		m.note("%v to %s %s", how, whom, process)
		if pid > 1 {
			syscall.Kill(pid, how) // an error means that it has ended
		}
	}
}

func (m *nemesis) note(format string, args ...any) {
	m.done = append(m.done, fmt.Sprintf(format, args...))
}

// survivable reports whether every rank still has a replica.
func (m *nemesis) survivable() bool {
	for rank := range m.n {
		left := 0
		for replica := range m.r {
			process := fmt.Sprintf("%d.%d", rank, replica)
			if !m.lost[process] && !m.gone[m.job.peerOf(m.peers, process)] {
				left++
			}
		}
		if left == 0 {
			return false
		}
	}
	return true
}

// pid returns a process of the job, or 0 if it has ended.
func (m *nemesis) pid(p *peerProcess, process string) int {
	pid, _ := p.rankProcess(process)
	return pid
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// pause stops a process for a time that must be survived (V3).
func (m *nemesis) pause(pid int, d time.Duration) {
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	select {
	case <-time.After(d):
	case <-m.job.ended:
	}
}

// awaitOutput lets the job go on for a while: until it has printed something
// more, or has ended.
func (m *nemesis) awaitOutput() {
	before := len(m.job.stdout.String())
	eventually(m.t, "more output", func() error {
		select {
		case <-m.job.ended:
			return nil
		default:
		}
		if len(m.job.stdout.String()) == before {
			return fmt.Errorf("none after %v", m.done)
		}
		return nil
	})
}

// recover expects that nothing of the job is left, and replaces the peers that
// are gone.
func (m *nemesis) recover() {
	for _, p := range m.peers {
		p.signal(syscall.SIGCONT)
	}
	expectNothingLeft(m.t, m.peers)
	m.peers = slices.DeleteFunc(m.peers, func(p *peerProcess) bool { return m.gone[p] })
	for range m.gone {
		m.peers = append(m.peers, boot(m.t, "--supernode", m.peers[0].addr, "--slots", "2"))
	}
	for p := range m.gone {
		p.kill()
	}
	clear(m.gone)
}

// samePerRank compares the lines of each rank, in order.
func samePerRank(out string, want []string) error {
	got := byRank(strings.SplitAfter(out, "\n"))
	for i := range want {
		want[i] += "\n"
	}
	for rank, lines := range byRank(want) {
		for i, line := range lines {
			if i >= len(got[rank]) || got[rank][i] != line {
				return fmt.Errorf("line %d of rank %s is not %q", i, rank, line)
			}
		}
		if len(got[rank]) > len(lines) {
			return fmt.Errorf("rank %s has %d lines, want %d", rank, len(got[rank]), len(lines))
		}
		delete(got, rank)
	}
	if len(got) > 0 {
		return fmt.Errorf("lines of nobody: %.200v", got)
	}
	return nil
}

// byRank sorts lines "rank I ..." by I.
func byRank(lines []string) map[string][]string {
	ranks := make(map[string][]string)
	for _, l := range lines {
		words := strings.SplitN(l, " ", 3)
		switch {
		case l == "":
		case len(words) < 3:
			ranks[""] = append(ranks[""], l)
		default:
			ranks[words[1]] = append(ranks[words[1]], l)
		}
	}
	return ranks
}

// floodOutput is what rude prints for lines=k.
func floodOutput(n, k int) []string {
	var out []string
	for rank := range n {
		for i := range k {
			out = append(out, fmt.Sprintf("rank %d line %d of a flood that nobody asked for", rank, i))
		}
	}
	return out
}

// oneOrder expects what farm prints: lines from every rank, and all ranks of one
// mind about the order of arrival.
func oneOrder(out string, n, lines int) error {
	ranks := byRank(strings.SplitAfter(out, "\n"))
	if len(ranks) != n {
		return fmt.Errorf("lines of %d ranks, want %d", len(ranks), n)
	}
	var first []string
	for rank, got := range ranks {
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "rank "+rank)
		}
		if len(got) != lines {
			return fmt.Errorf("rank %s printed %d lines, want %d", rank, len(got), lines)
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			return fmt.Errorf("ranks disagree about the order:\n%s\n%s", got, first)
		}
	}
	return nil
}
