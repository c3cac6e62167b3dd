package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// unsandboxed are the attempts of the hostile program that succeed without a sandbox, for any user,
// against an owner who is the same user. They harm nothing but the files of the test's owner. The other attempts would
// do harm, or need something that not every machine has.
var unsandboxed = map[string][]string{
	"files": {
		"list the owner's home", "read the owner's SSH key", "read the peer's identity", "read the peer's lock", "list the peer's cache",
		"read another file of the owner's", "list a neighbour's folder", "write into the owner's home", "write into the peer's cache",
		"write elsewhere of the owner's", "write into a neighbour's folder", "write beside the program", "overwrite the program",
		"read through a symbolic link", "write through a symbolic link", "read through a hard link", "climb out of the folder",
		"read through the peer's /proc/PID", "write through the peer's /proc/PID", "write into a neighbour by /proc/PID",
		"read the peer's environment", "open the peer's files by /proc/PID/fd", "own descriptors that lead out", "keep bytes beside a file",
	},
	"network": {
		"connect with TCP", "send with UDP", "listen with TCP", "listen on an abstract name", "listen in its folder", "connect to a path",
		"connect to an abstract name", "use the control socket", "socket of IPv4", "socket of IPv4, datagrams", "socket of this machine", "socket to the kernel",
	},
	"processes": {
		"see other processes", "signal the peer", "signal a neighbour", "trace the peer", "trace a neighbour", "read the peer's memory",
		"read a neighbour's memory", "read a neighbour's memory by file", "read a neighbour's map", "get a handle to the peer",
		"get a handle to a neighbour", "slow the peer down", "send a descriptor", "take all of the owner's timers",
	},
	"kernel": {"own privileges", "add a key", "look for keys", "a new session with the keys", "make a memory segment", "make a message queue"},
}

// unsandboxedRoot are the attempts that succeed when root runs them, and that do no harm to a machine
// from whose mounts and host name they are separated.
var unsandboxedRoot = map[string][]string{
	"files":     {"open a file by its handle"},
	"processes": {"enter the peer's namespaces", "get in front of all others"},
	"kernel": {
		"become the owner", "mount a file system", "mount by the newer calls", "bind a folder", "change the root", "swap the root",
		"new mount namespace", "new network namespace", "set the machine's name",
	},
}

// TestO1EscapesSucceedWithoutSandbox checks that attempts succeed when nothing stops them. Otherwise
// their failure in a sandbox would prove nothing.
func TestO1EscapesSucceedWithoutSandbox(t *testing.T) {
	t.Parallel()
	user := uint32(ordinary)
	if os.Geteuid() != 0 {
		user = 0
	}
	l := newUnsandboxedRun(t, user)
	for group, names := range unsandboxed {
		for _, name := range names {
			l.expectGot(t, group, name)
		}
	}
	t.Run("setuid", func(t *testing.T) {
		var at unix.Statfs_t
		if err := unix.Statfs(os.TempDir(), &at); l.setuid == "" || err != nil || at.Flags&unix.ST_NOSUID != 0 {
			skip.Lacks(t, "root, and a TMPDIR where files can be setuid")
		}
		l.expectGot(t, "kernel", "be root by a setuid program")
	})
	t.Run("root", func(t *testing.T) {
		if os.Geteuid() != 0 {
			skip.Lacks(t, "root")
		}
		l := newUnsandboxedRun(t, 0)
		l.flags = syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
		for group, names := range unsandboxedRoot {
			for _, name := range names {
				l.expectGot(t, group, name)
			}
		}
	})
}

// An unsandboxedRun runs the hostile program without a sandbox, as the owner of the files.
type unsandboxedRun struct {
	*ownerFiles
	program string // copy of the program that belongs to the user
	folder  string // its working directory
	beside  *os.File
	decoy   *exec.Cmd // stands for the peer and for a neighbour
	flags   uintptr   // separate namespaces
}

func newUnsandboxedRun(t *testing.T, user uint32) *unsandboxedRun {
	t.Helper()
	l := &unsandboxedRun{ownerFiles: writeOwnerFiles(t, user), folder: folderOf(t, user)}
	for _, name := range []string{"identity", "lock", "cache/piece"} {
		l.write(t, l.home, name)
	}
	l.listen(t, "unix", filepath.Join(l.home, "control.sock"))
	text, err := os.ReadFile(filepath.Join(bin, "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	l.program = filepath.Join(folderOf(t, user), "hostile")
	if err := os.WriteFile(l.program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if l.beside, err = os.Open(l.outside); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.beside.Close() })
	l.write(t, l.folder, "own")
	for _, path := range []string{l.program, filepath.Join(l.outside, "socket"), filepath.Join(l.home, "control.sock")} {
		l.give(t, path)
	}
	l.startDecoy(t)
	return l
}

// startDecoy starts a process that can be traced, and that looks like a process of a job. It ends
// with the test.
func (l *unsandboxedRun) startDecoy(t *testing.T) {
	t.Helper()
	l.decoy = l.command(t, "decoy", "p2prun")
	l.decoy.Dir = folderOf(t, l.user)
	l.write(t, l.decoy.Dir, "result")
	in, err := l.decoy.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := l.decoy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.decoy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		l.decoy.Wait()
	})
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		t.Fatalf("the decoy printed %q: %v", line, err)
	}
}

// command returns the hostile program, run as the user.
func (l *unsandboxedRun) command(t *testing.T, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), l.program, args...)
	c.Dir, c.Env = l.folder, []string{"HOME=" + l.home}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: l.flags}
	if l.user != 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: l.user, Gid: l.user}
	}
	return c
}

// expectGot expects that an attempt of a group succeeds. The program makes only that attempt.
func (l *unsandboxedRun) expectGot(t *testing.T, group, name string) {
	t.Helper()
	pid := l.decoy.Process.Pid
	c := l.command(t, append(append([]string{"-only=" + name}, l.tell(pid, pid, l.decoy.Dir)...), group)...)
	c.ExtraFiles = []*os.File{l.beside}
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), name+": got ") {
		t.Errorf("%s: %v, %s", name, err, out)
	}
}
