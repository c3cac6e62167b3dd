package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// controlGroups is the mount point of control groups version 2.
const controlGroups = "/sys/fs/cgroup"

// A delegation describes the control groups of version 2 that a peer may use.
type delegation struct {
	user        uint32
	controllers []string // of the group delegated to the peer, or nil if the peer starts in the test's group
	unenforced  []string // limits that the kernel does not enforce there
}

// delegations are typical for owners: a service, the user's own scope (systemd-run --user --scope),
// a scope where users get few controllers, and no delegation on a system with groups.
var delegations = map[string]delegation{
	"root":                      {0, []string{"cpu", "memory", "pids"}, nil},
	"user":                      {ordinary, []string{"cpu", "memory", "pids"}, nil},
	"user with few controllers": {ordinary, []string{"memory", "pids"}, []string{"cpu"}},
	"user without delegation":   {ordinary, nil, []string{"memory", "cpu", "processes"}},
}

// crowdedHang is the tolerated hang of peers that get little processor time, such as thirty peers
// on one machine. An emulated machine, which is about twenty times slower than its host, needs it
// too.
const crowdedHang = 30 * time.Second

// TestO1JobsInGroupsOfVersion2 runs jobs at peers with different delegations. A job computes its
// result. Programs that exceed their limits are ended, or get no more processor time. The peer
// reports unenforced limits at boot. Killed peers leave no groups.
func TestO1JobsInGroupsOfVersion2(t *testing.T) {
	if _, err := os.Stat(filepath.Join(controlGroups, "cgroup.controllers")); err != nil {
		t.Skip("the system does not use control groups version 2")
	}
	if os.Geteuid() != 0 {
		skip.Lacks(t, "root, to delegate control groups to others")
	}
	held, supernode := bootDelegated(t)
	peers := slices.Collect(maps.Keys(held))
	run := func(n, r string, program ...string) *job {
		options := []string{"--supernode", supernode.addr, "-n", n, "-r", r, "-w", "60", "--tolerated-hang", crowdedHang.String()}
		return submit(t, t.TempDir(), append(options, program...)...)
	}

	j := run("2", "2", filepath.Join(bin, "stepper"), "-steps", "100", "-every", "10", "-work", "0")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	expectStepper(t, j, 2, 100, 10)
	expectNothingLeft(t, peers)

	for text, named := range map[string]string{filler: "64 MiB memory", many: "24 processes and threads"} {
		j := run("1", "4", script(t, text))
		if s := j.wait(); s != 70 {
			t.Errorf("exit status %d, want 70:\n%s", s, j.stderr)
		}
		for replica := range 4 {
			want := fmt.Sprintf("replica %d was ended by its peer [^ ]*: exceeded the limit of %s: ", replica, named)
			if !regexp.MustCompile(want).MatchString(j.stderr.String()) {
				t.Errorf("p2prun did not print a match of %q:\n%s", want, j.stderr)
			}
		}
		expectNothingLeft(t, peers)
	}

	j = run("1", "4", script(t, spinners))
	j.waitRunning()
	expectProcessors(t, held, 30)
	for _, p := range peers {
		p.kill()
	}
	expectNothingLeft(t, peers)
	if s := j.wait(); s != 70 {
		t.Errorf("p2prun ended with status %d, want 70", s)
	}
}

// bootDelegated boots a peer for each of delegations, and one that introduces them.
func bootDelegated(t *testing.T) (held map[*peerProcess]delegation, supernode *peerProcess) {
	t.Helper()
	supernode = boot(t, "--slots", "0")
	held = make(map[*peerProcess]delegation)
	for name, d := range delegations {
		m := *loopback
		m.user, m.group = d.user, d.delegate(t, "p2pmpi-e2e-"+strings.ReplaceAll(name, " ", "-"))
		held[m.startPeer(t, folderOf(t, d.user), "--supernode", supernode.addr, "--slots", "1",
			"--slot-limits", "memory=64MiB,processes=24,cpu=30%", "--require-confinement=false")] = d
	}
	for p, d := range held {
		p.awaitReady()
		p.expectUnenforced(t, d.unenforced)
	}
	return held, supernode
}

// Programs that exceed their limits: of memory, at once; of processes; of processor time.
const (
	filler   = "#!/bin/sh\nexec dd if=/dev/zero of=/dev/null bs=200M\n"
	many     = "#!/bin/sh\ni=0; while [ $i -lt 32 ]; do sleep 3600 & i=$((i+1)); done; wait\n"
	spinners = "#!/bin/sh\nwhile :; do :; done & while :; do :; done\n"
)

// script creates a script that every user may run.
func script(t *testing.T, text string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// delegate makes a group with the controllers of d and gives it to the user, as systemd does
// (Delegate=yes). It is removed at the end of the test.
func (d delegation) delegate(t *testing.T, name string) string {
	t.Helper()
	if d.controllers == nil {
		return ""
	}
	slice := filepath.Join(controlGroups, name)
	t.Cleanup(func() { removeGroups(t, slice) })
	scope := filepath.Join(slice, "peer")
	if err := os.MkdirAll(scope, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{controlGroups, slice} {
		for _, c := range d.controllers {
			if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(scope, name), int(d.user), int(d.user)); err != nil {
			t.Fatal(err)
		}
	}
	return scope
}

// removeGroups removes an empty group and those below it.
func removeGroups(t *testing.T, folder string) {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	for _, f := range slices.Backward(folders) {
		err = errors.Join(err, os.Remove(f))
	}
	if err != nil {
		t.Error(err)
	}
}

// expectUnenforced expects that the peer reports exactly these limits as not enforced by the kernel.
func (p *peerProcess) expectUnenforced(t *testing.T, want []string) {
	t.Helper()
	s, err := p.status()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range s.Granted.Unheld {
		got = append(got, u.Limit)
		t.Logf("%s is not enforced: %s", u.Limit, u.Why)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the limits reported as not enforced are %v, want %v", got, want)
	}
	if said := strings.Count(p.log.String(), "a limit of programs cannot be enforced here"); said != len(want) {
		t.Errorf("the log names %d unenforced limits, want %d", said, len(want))
	}
}

// expectProcessors expects that the job's processor use, in percent of one processor, stays within the quota
// where the kernel enforces it. The quota applies to each tenth of a second, and half of a quota may be used
// later.
func expectProcessors(t *testing.T, held map[*peerProcess]delegation, most float64) {
	t.Helper()
	begun := time.Now()
	before := make(map[*peerProcess]time.Duration)
	for p := range held {
		before[p] = p.computed(t)
	}
	time.Sleep(4 * time.Second) // the interval over which use is measured
	for p, d := range held {
		had := (p.computed(t) - before[p]).Seconds() / time.Since(begun).Seconds() * 100
		t.Logf("used %.1f %% of the limit; not enforced: %v", had/most*100, d.unenforced)
		if !slices.Contains(d.unenforced, "cpu") && had > most*1.05 || had <= 0 {
			t.Errorf("the job used %.1f %% of a processor, want at most %.0f %%", had, most)
		}
	}
}

// computed returns the processor time of the peer's only job.
func (p *peerProcess) computed(t *testing.T) (had time.Duration) {
	t.Helper()
	eventually(t, "a job at peer "+p.id, func() error {
		s, err := p.status()
		if err == nil && len(s.Hosted) != 1 {
			err = fmt.Errorf("hosted jobs %+v, want 1", s.Hosted)
		}
		if err == nil {
			had = s.Hosted[0].Use.CPU
		}
		return err
	})
	return had
}
