package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A prey is what a hostile program is after: a peer, its owner's files, and a neighbour's job.
type prey struct {
	peer      *peerProcess
	outside   string // a folder of the owner's beside the home
	neighbour *job   // of another submitter
	steps     int    // that the neighbour has been seen to take
	listener  net.Listener
	abstract  string
	heard     atomic.Int32 // connections that were made from wherever
}

// secret is in each of the owner's files, and nowhere else.
const secret = "p2pmpi-the-owners-secret"

// newPrey boots a peer on a home with secrets, and has a neighbour run there. What gets out of a
// process all the same is still not in the mount namespace of the machine.
func newPrey(t *testing.T, args ...string) *prey {
	t.Helper()
	v := &prey{outside: t.TempDir()}
	home := t.TempDir()
	for _, path := range []string{filepath.Join(home, ".ssh/id_ed25519"), filepath.Join(v.outside, "secret")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.abstract = strings.ReplaceAll(home, "/", "-")
	v.listener = v.listen(t, "tcp", "127.0.0.1:0")
	v.listen(t, "unix", filepath.Join(v.outside, "socket"))
	v.listen(t, "unix", "@"+v.abstract)
	m := *loopback
	m.apart = true
	v.peer = m.startPeer(t, home, append([]string{"--slots", "16", "--slot-limits", "memory=128MiB,disk=32MiB,processes=64,files=256"}, args...)...)
	v.peer.awaitReady()
	v.neighbour = submit(t, t.TempDir(), "--supernode", v.peer.addr, "-n", "2", "-a", "concentrate", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "1000000", "-every", "10", "-work", "0", "-pause", "10ms")
	v.neighbour.waitRunning()
	v.expectNeighbour(t)
	return v
}

// listen counts who connects.
func (v *prey) listen(t *testing.T, network, at string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.heard.Add(1)
			c.Close()
		}
	}()
	return l
}

// attack starts the hostile program, as a job of a stranger.
func (v *prey) attack(t *testing.T, how string, options ...string) *job {
	t.Helper()
	pid, ok := v.peer.rankProcess("0.0")
	if !ok {
		t.Fatal("the neighbour has no process")
	}
	args := append([]string{"--supernode", v.peer.addr, "-n", "1", "-w", "60"}, options...)
	return submit(t, t.TempDir(), append(args, filepath.Join(bin, "hostile"),
		"-home="+v.peer.home, "-outside="+v.outside, "-peer="+strconv.Itoa(v.peer.cmd.Process.Pid),
		"-victim="+strconv.Itoa(pid), "-folder="+workingFolders()[pid], "-listener="+v.listener.Addr().String(), "-abstract="+v.abstract, how)...)
}

var stepLine = regexp.MustCompile(`(?m)^rank 1 step ([0-9]+) `)

// expectNeighbour expects that the neighbour's job takes further steps, and has got all of them right.
func (v *prey) expectNeighbour(t *testing.T) {
	t.Helper()
	before := v.steps
	eventually(t, "the neighbour's next steps", func() error {
		if all := stepLine.FindAllStringSubmatch(v.neighbour.stdout.String(), -1); len(all) > 0 {
			v.steps, _ = strconv.Atoi(all[len(all)-1][1])
		}
		if v.steps < before+20 {
			return fmt.Errorf("step %d, after %d", v.steps, before)
		}
		return nil
	})
	want := nemesis.ByRank(joinLines(stepperOutput(2, v.steps+100, 10)))
	out := v.neighbour.stdout.String()
	for rank, lines := range nemesis.ByRank(out[:strings.LastIndex(out, "\n")+1]) {
		if n := min(len(lines), len(want[rank])); !slices.Equal(lines[:n], want[rank][:n]) {
			t.Errorf("the neighbour's rank %s is wrong: %.400q", rank, lines)
		}
	}
}

// expectWhole expects that the peer is well, that its neighbour is, and that nothing is
// where a hostile program has no right to write.
func (v *prey) expectWhole(t *testing.T) {
	t.Helper()
	if !v.peer.alive() {
		t.Fatal("the peer has ended")
	}
	v.expectNeighbour(t)
	if n := v.heard.Load(); n > 0 {
		t.Errorf("%d connections", n)
	}
	const planted = "p2pmpi-planted"
	for _, dir := range []string{v.peer.home, v.outside, "/tmp", "/dev/shm", "/", "/etc", "/usr", "/var/tmp"} {
		if os.Remove(filepath.Join(dir, planted)) == nil {
			t.Errorf("it has written into %s", dir)
		}
	}
	if left := processesNaming("-home=" + v.peer.home); len(left) > 0 {
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		t.Errorf("processes %d are left", left)
	}
}

// processesNaming returns the hostile processes with that word on their command line.
func processesNaming(word string) (pids []int) {
	for pid := range workingFolders() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(line), "\x00")
		if slices.Contains(words, word) && filepath.Base(words[0]) == "hostile" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestO1Bombs has programs of strangers use up what a machine has, or stay when they are to be
// gone. Each is stopped; the peer and its neighbour's job do not notice.
func TestO1Bombs(t *testing.T) {
	t.Parallel()
	v := newPrey(t)
	exceeded := func(what string) string { return "exceeded the limit of [^:]* " + what }
	bombs := map[string]struct {
		options []string
		status  int
		says    string // on standard error, a regular expression
	}{
		"fork":        {nil, 70, exceeded("processes")},
		"memory":      {nil, 70, exceeded("memory")},
		"disk":        {nil, 70, exceeded("disk")},
		"descriptors": {nil, 70, exceeded("(open )?files")},
		"sleep":       {[]string{"--timeout", "5s"}, 75, ""},
		"daemon":      {nil, 0, ""},
		"late":        {nil, 0, ""},
	}
	jobs := make(map[string]*job)
	for how, b := range bombs {
		jobs[how] = v.attack(t, how, b.options...)
	}
	for _, how := range slices.Sorted(maps.Keys(bombs)) {
		t.Run(how, func(t *testing.T) {
			j, b := jobs[how], bombs[how]
			if s := j.wait(); s != b.status {
				t.Errorf("exit status %d, want %d", s, b.status)
			}
			if said := j.stderr.String(); !regexp.MustCompile(b.says).MatchString(said) {
				t.Errorf("it does not say %q:\n%s", b.says, said)
			}
			if got := j.stdout.String(); strings.Contains(got, how+": got ") {
				t.Error(got)
			}
		})
	}
	v.expectWhole(t)
	v.neighbour.cancel(t)
	expectNothingLeft(t, []*peerProcess{v.peer})
}

// TestO1OutputFlood has a program print without end, for a submitter that reads nothing and then
// is gone. The peer does not keep it.
func TestO1OutputFlood(t *testing.T) {
	t.Parallel()
	v := newPrey(t)
	before := memoryOf(t, v.peer)
	j := v.attack(t, "output")
	eventually(t, "the flood", func() error {
		if j.stdout.String() == "" {
			return errors.New("nothing has come")
		}
		return nil
	})
	j.cmd.Process.Signal(syscall.SIGSTOP)
	v.expectNeighbour(t)
	v.expectNeighbour(t)
	grown := memoryOf(t, v.peer) - before
	t.Logf("%d MiB before, %d MiB more", before>>20, grown>>20)
	if grown > 64<<20 {
		t.Error("the peer keeps the flood")
	}
	j.cmd.Process.Kill()
	j.wait()
	eventually(t, "the flood's end", func() error {
		if left := processesNaming("-home=" + v.peer.home); len(left) > 0 {
			return fmt.Errorf("processes %d", left)
		}
		return nil
	})
	v.expectWhole(t)
}

// cancel ends a job as its user would.
func (j *job) cancel(t *testing.T) {
	t.Helper()
	j.cmd.Process.Signal(syscall.SIGINT)
	if s := j.wait(); s != 130 {
		t.Errorf("exit status %d of a job that is cancelled", s)
	}
}

// TestO1Escapes has a program of a stranger try to get at what is the owner's, the peer's and a
// neighbour's, in all the ways that it knows. It is stopped in each.
func TestO1Escapes(t *testing.T) {
	t.Parallel()
	v := newPrey(t)
	least := map[string]int{"files": 30, "network": 20, "processes": 15, "kernel": 30} // attempts
	jobs := make(map[string]*job)
	for group := range least {
		jobs[group] = v.attack(t, group, "-o", "link-*")
	}
	for _, group := range slices.Sorted(maps.Keys(jobs)) {
		t.Run(group, func(t *testing.T) {
			j := jobs[group]
			if s := j.wait(); s != 0 {
				t.Errorf("exit status %d", s)
			}
			stopped := 0
			for line := range strings.Lines(j.stdout.String()) {
				name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				if strings.HasPrefix(what, "stopped: ") {
					stopped++
				} else {
					t.Errorf("%s: %s", name, what)
				}
			}
			if stopped < least[group] {
				t.Errorf("%d attempts were stopped, of at least %d", stopped, least[group])
			}
			if out := j.stdout.String() + j.stderr.String(); strings.Contains(out, secret) {
				t.Error("it has a secret of the owner's")
			}
			j.expectNoLinks(t)
		})
	}
	v.expectWhole(t)
}

// expectNoLinks expects that nothing was collected through links.
func (j *job) expectNoLinks(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(j.cmd.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("collected %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
