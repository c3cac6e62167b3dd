package cgroup

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// needGroups skips the test if control groups cannot be created.
func needGroups(t *testing.T, tree *Tree) {
	t.Helper()
	if why := errors.Join(tree.Missing(Memory), tree.Missing(CPU), tree.Missing(Pids)); why != nil {
		skip.Lacks(t, why)
	}
}

// TestGroupsOfAJob checks that a process that enters its group is subject to its quota, and that Remove
// kills what is left and removes the group.
func TestGroupsOfAJob(t *testing.T) {
	home := t.TempDir()
	tree := Open(home)
	needGroups(t, tree)
	job, err := tree.NewJob("0123", Quota{Memory: 1 << 30, CPU: 150, Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Remove() })
	group, err := job.NewProcess("0.0", Quota{Memory: 64 << 20, Processes: 20})
	if err != nil {
		t.Fatal(err)
	}
	sleep := inGroup(t, group)
	if got := group.Processes(); !slices.Equal(got, []int{sleep.Process.Pid}) {
		t.Errorf("%v in the group, want %d", got, sleep.Process.Pid)
	}
	if got := job.Processes(); !slices.Contains(got, sleep.Process.Pid) && tree.Missing(Memory) == nil {
		t.Errorf("%v in the group of the job, want %d", got, sleep.Process.Pid)
	}
	if u := group.Usage(); u.Processes != 1 || u.Killed != 0 || u.Refused != 0 {
		t.Errorf("usage %+v", u)
	}
	for range 2 { // likewise for an idle group
		if err := job.SetPriority(Priority{Weight: 30, Idle: true}); err != nil {
			t.Error(err)
		}
		wantPriority(t, job, "1", "")
	}
	job.RestoreWeight()
	wantPriority(t, job, "0", "1024")
	for _, percent := range []int64{300, 50} {
		if err := job.SetCPU(percent); err != nil {
			t.Errorf("set to %d %%: %v", percent, err)
		}
	}
	folders := slices.Concat(group.Folders(), job.Folders())
	if err := job.Remove(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, sleep, folders)
}

// wantPriority checks the kernel's values of a group, as far as they exist. shares, if set, is the weight
// of version 1.
func wantPriority(t *testing.T, g *Group, idle, shares string) {
	t.Helper()
	for file, want := range map[string]string{"cpu.idle": idle, "cpu.shares": shares} {
		if got, err := os.ReadFile(filepath.Join(g.folders[CPU], file)); err == nil && want != "" && strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, want %s", file, got, want)
		}
	}
}

// TestStaleGroupsAreRemoved checks that Open removes the groups of a peer that was killed together with its
// supervisors.
func TestStaleGroupsAreRemoved(t *testing.T) {
	home := t.TempDir()
	tree := Open(home)
	needGroups(t, tree)
	job, err := tree.NewJob("4567", Quota{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	group, err := job.NewProcess("0.0", Quota{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.TempDir()).NewJob("4567", Quota{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Remove()
	sleep := inGroup(t, group)
	Open(home)
	wantGone(t, sleep, slices.Concat(group.Folders(), job.Folders()))
	for _, f := range other.Folders() {
		if _, err := os.Stat(f); err != nil {
			t.Errorf("another peer's group was removed: %v", err)
		}
	}
}

// inGroup starts a process in a group.
func inGroup(t *testing.T, g *Group) *exec.Cmd {
	t.Helper()
	sleep := exec.Command("sleep", "3600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleep.Process.Kill() })
	for _, f := range g.Folders() {
		if err := write(f, "cgroup.procs", strconv.Itoa(sleep.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	return sleep
}

// TestVersion1OutOfMemory checks that a job that fills its limit with reclaimable memory does not count
// as out of memory, and one that is refused more does.
func TestVersion1OutOfMemory(t *testing.T) {
	skip.Long(t)
	tree := Open(t.TempDir())
	needGroups(t, tree)
	if _, ok := tree.kernel.(*v1); !ok {
		t.Skip("version 2 tells by itself")
	}
	job, err := tree.NewJob("89ab", Quota{Memory: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Remove() })
	file := filepath.Join(t.TempDir(), "f")
	runIn(t, job, "head -c 64M /dev/zero >"+file+" && sync "+file)
	if !full(job.folders[Memory]) {
		skip.Lacks(t, "a file system that keeps something in memory")
	}
	if u := job.Usage(); u.Short != 0 {
		t.Errorf("with a full cache: %+v", u)
	}
	runIn(t, job, "tail /dev/zero")
	if u := job.Usage(); u.Short == 0 || u.Killed == 0 {
		t.Errorf("without memory: %+v", u)
	}
}

// TestQuotasHold makes processes use more than their group may: memory, number of processes, processor
// time.
func TestQuotasHold(t *testing.T) {
	tree := Open(t.TempDir())
	needGroups(t, tree)
	job, err := tree.NewJob("cdef", Quota{Memory: 128 << 20, CPU: 20, Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Remove() })
	const memory, processes = 16 << 20, 10
	group, err := job.NewProcess("0.0", Quota{Memory: memory, Processes: processes})
	if err != nil {
		t.Fatal(err)
	}
	runIn(t, group, "dd if=/dev/zero of=/dev/null bs=64M count=1")
	if u := group.Usage(); u.Killed == 0 || u.MostMemory > memory || job.Usage().Short > 0 {
		t.Errorf("with 64 MiB of memory: %+v, its job %+v", u, job.Usage())
	}
	runIn(t, group, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 3600 & done >/dev/null 2>&1")
	if u := group.Usage(); u.Refused == 0 || u.Processes > processes || u.MostProcesses > processes {
		t.Errorf("with 12 processes: %+v", u)
	}
	stay, err := job.NewProcess("1.0", Quota{})
	if err != nil {
		t.Fatal(err)
	}
	runIn(t, stay, "while :; do :; done &")
	for late := time.Now().Add(20 * time.Second); number(job.folders[CPU], "cpu.stat", "nr_throttled") == 0; time.Sleep(time.Millisecond) { // interval between polls
		if time.Now().After(late) {
			t.Fatal("a busy program was never throttled")
		}
	}
}

// runIn runs a command in a group, which may kill it.
func runIn(t *testing.T, g *Group, command string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read go; "+command)
	begin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range g.Folders() {
		if err := write(f, "cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Error(err)
		}
	}
	begin.Write([]byte("\n"))
	begin.Close()
	cmd.Wait()
}

// wantGone checks that a process was killed and that the folders were removed.
func wantGone(t *testing.T, c *exec.Cmd, folders []string) {
	t.Helper()
	c.Wait()
	if s := c.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v", s)
	}
	for _, f := range folders {
		if _, err := os.Stat(f); !os.IsNotExist(err) {
			t.Errorf("%s is left", f)
		}
	}
}

// TestVersion1WithTheCPUControllerOnly checks that a process without a group of its own is not credited with
// all processes of its job's group.
func TestVersion1WithTheCPUControllerOnly(t *testing.T) {
	root := t.TempDir()
	k := &v1{folders: map[Controller]string{CPU: root}, usable: []Controller{CPU}}
	put(t, filepath.Join(root, "p2pmpi-x-0123/cgroup.procs"), strconv.Itoa(os.Getpid()))
	job := &Group{tree: &Tree{kernel: k}, name: "p2pmpi-x-0123", folders: map[Controller]string{CPU: filepath.Join(root, "p2pmpi-x-0123")}}
	process, err := job.NewProcess("0.0", Quota{Memory: 1 << 30, Processes: 20})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := process.Folders(), job.Folders(); !slices.Equal(got, want) {
		t.Errorf("a process enters %v, want %v", got, want)
	}
	if got := process.Processes(); len(got) > 0 {
		t.Errorf("the process has %v", got)
	}
	if got := job.Processes(); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("the job has %v", got)
	}
	if err := process.Remove(); err != nil { // this must not kill the test
		t.Error(err)
	}
	if _, err := os.Stat(job.Folders()[0]); err != nil {
		t.Errorf("the group of the job: %v", err)
	}
}

// A mounted is a version 1 controller whose groups are in the given folder.
type mounted string

func (m mounted) Name() cgroup1.Name { return cgroup1.Name(CPU) }
func (m mounted) Path(string) string { return string(m) }

// TestVersion1IgnoresUnusableControllers checks that a controller in which no group can be created is
// missing.
func TestVersion1IgnoresUnusableControllers(t *testing.T) {
	if _, ok := Open(t.TempDir()).kernel.(*v1); !ok {
		t.Skip("this is not version 1")
	}
	for name, tt := range map[string]struct {
		folder string
		keeps  int
	}{
		"a folder": {t.TempDir(), 1},
		"none":     {filepath.Join(t.TempDir(), "none"), 0},
	} {
		k := newV1()
		err := k.try("p2pmpi-x", CPU, mounted(tt.folder))
		if len(k.folders) != tt.keeps || (err == nil) != (tt.keeps > 0) {
			t.Errorf("%s: folders %v, %v", name, k.folders, err)
		}
	}
}

// TestVersion2 checks which values are written to which files, with a folder in place of the kernel.
func TestVersion2(t *testing.T) {
	k := &v2{root: t.TempDir(), own: "user.slice/peer.scope"}
	files := map[string]string{
		"cgroup.subtree_control":                           "",
		"user.slice/cgroup.subtree_control":                "",
		"user.slice/peer.scope/cgroup.type":                "domain",
		"user.slice/peer.scope/cgroup.procs":               strconv.Itoa(os.Getpid()),
		"user.slice/peer.scope/cgroup.subtree_control":     "cpu memory pids",
		"user.slice/peer.scope/p2pmpi-x-0123/io.weight":    "",
		"user.slice/peer.scope/p2pmpi-x-peer/cgroup.procs": "",
	}
	// The kernel creates the files of a group. The code under test would create them without permissions
	// here.
	for _, name := range []string{"memory.max", "cpu.max", "pids.max", "0.0/memory.max", "0.0/pids.max", "0.0/memory.oom.group"} {
		files["user.slice/peer.scope/p2pmpi-x-0123/"+name] = ""
	}
	for name, text := range files {
		put(t, filepath.Join(k.root, name), text)
	}
	k.leaf = k.folder("")
	if err := k.divide("p2pmpi-x"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, k.folder("p2pmpi-x-peer/cgroup.procs")); got != "0" {
		t.Errorf("the peer did not enter its leaf: %q", got)
	}
	put(t, k.folder("cgroup.subtree_control"), "cpu memory pids") // the kernel's reaction to "+cpu" and so on
	k.usable = k.enabled()
	job, err := k.job("p2pmpi-x-0123", Quota{Memory: 1 << 30, CPU: 150, Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cgroup.subtree_control", "cpu.weight", "cpu.idle"} {
		put(t, k.folder("p2pmpi-x-0123/"+file), "")
	}
	if err := k.setPriority(job, Priority{Weight: 220, Idle: true}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cpu.max", "cpu.max.burst"} {
		if err := os.Truncate(k.folder("p2pmpi-x-0123/"+file), 0); err != nil && file == "cpu.max" {
			t.Fatal(err)
		}
	}
	if err := k.setCPU(job, 300); err != nil {
		t.Fatal(err)
	}
	process, err := k.process("p2pmpi-x-0123", "0.0", Quota{Memory: 64 << 20, Processes: 20})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"p2pmpi-x-0123/memory.max":           "1073741824",
		"p2pmpi-x-0123/cpu.max":              "300000 100000",
		"p2pmpi-x-0123/cpu.weight":           "21",
		"p2pmpi-x-0123/cpu.idle":             "1",
		"p2pmpi-x-0123/pids.max":             "100",
		"p2pmpi-x-0123/io.weight":            "default 21",
		"p2pmpi-x-0123/0.0/memory.max":       "67108864",
		"p2pmpi-x-0123/0.0/pids.max":         "20",
		"p2pmpi-x-0123/0.0/memory.oom.group": "1",
	} {
		if got := read(t, k.folder(name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if control := read(t, k.folder("p2pmpi-x-0123/cgroup.subtree_control")); strings.Contains(control, "cpu") {
		t.Errorf("the processes of a job are divided for the processors: %q", control)
	}
	for folder, all := range map[string]map[Controller]string{k.folder("p2pmpi-x-0123"): job, k.folder("p2pmpi-x-0123/0.0"): process} {
		if got := slices.Compact(slices.Collect(maps.Values(all))); !slices.Equal(got, []string{folder}) {
			t.Errorf("got %v, want %s", all, folder)
		}
	}
	put(t, k.folder("p2pmpi-x-0123/0.0/memory.events"), "low 0\noom 1\noom_kill 2\n")
	put(t, k.folder("p2pmpi-x-0123/0.0/memory.peak"), "67108864\n")
	put(t, k.folder("p2pmpi-x-0123/0.0/pids.events"), "max 3\n")
	put(t, k.folder("p2pmpi-x-0123/0.0/memory.events.local"), "low 0\noom 1\noom_kill 2\n")
	if got, want := k.usage(process), (Usage{MostMemory: 64 << 20, Short: 1, Killed: 2, Refused: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestVersion2RefusesAGroupWithOtherProcesses checks that a group with other processes is not divided, and
// that the error states the remedy.
func TestVersion2RefusesAGroupWithOtherProcesses(t *testing.T) {
	k := &v2{root: t.TempDir(), own: "session.scope"}
	put(t, k.folder("cgroup.type"), "domain")
	put(t, k.folder("cgroup.procs"), strconv.Itoa(os.Getpid())+"\n1\n")
	if err := k.divide("p2pmpi-x"); err == nil || !strings.Contains(err.Error(), "Delegate=yes") {
		t.Errorf("got %v", err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(text))
}
