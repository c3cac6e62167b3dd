package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// attempts returns the results of actions that must fail in a sandbox. Each is harmless if it succeeds.
func attempts(secret string) map[string]error {
	_, read := os.ReadFile(secret)
	write := os.WriteFile("/usr/p2pmpi-escaped", nil, 0o600)
	got := map[string]error{"read a file of the owner": read, "write outside": write}
	for name, family := range map[string]int{"inet": unix.AF_INET, "unix": unix.AF_UNIX, "netlink": unix.AF_NETLINK} {
		_, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		got["open a socket: "+name] = err
	}
	_, got["make a pair of sockets that can send anywhere"] = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	var limit unix.Rlimit
	got["limit a process by its number"] = unix.Prlimit(os.Getpid(), unix.RLIMIT_CPU, nil, &limit)
	got["lower the niceness"] = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0)
	got["connect the inherited socket"] = unix.Connect(socketFD, &unix.SockaddrUnix{Name: "/x"})
	got["make a namespace"] = unix.Unshare(unix.CLONE_NEWUSER)
	got["mount"] = unix.Mount("none", ".", "tmpfs", 0, "")
	_, got["read the supervisor's environment"] = os.ReadFile("/proc/1/environ")
	got["trace"] = unix.PtraceAttach(1)
	got["become root"] = syscall.Setuid(0)
	got["reserve disk space beyond the size of a file"] = fallocate(unix.FALLOC_FL_KEEP_SIZE)
	got["reserve disk space"] = fallocate(0)
	got["reserve disk space for zeros"] = fallocate(unix.FALLOC_FL_ZERO_RANGE)
	got["lock a file of the machine"], got["lock part of a file of the machine"], got["lease a file of the machine"] = lock("/usr")
	if b, err := os.ReadFile("/proc/cmdline"); err == nil && len(b) == 0 {
		got["read how the machine was booted"] = syscall.EACCES
	} else {
		got["read how the machine was booted"] = err
	}
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // with a limit of 0, the kernel starts a core handler
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Max == 1 && limit.Cur == 1 {
		got["have a core handler started"] = syscall.EACCES
	} else {
		got["have a core handler started"] = nil
	}
	return got
}

// fallocate tries to reserve disk space in a new file.
func fallocate(mode uint32) error {
	f, err := os.CreateTemp(".", "reserved-")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), mode, 0, 1<<20)
}

// lock tries to lock a readable file in three ways.
func lock(path string) (whole, part, lease error) {
	f, err := os.Open(path)
	if err != nil {
		return err, err, err
	}
	defer f.Close()
	whole = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	part = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	_, lease = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return whole, part, lease
}

func init() { programs["escape"], programs["multiply"] = escape, multiply }

// multiply starts processes until the kernel refuses one.
func multiply([]string) {
	for n := range 3 * mostProcesses {
		_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "3600"}, nil)
		if err != nil {
			fmt.Println(n, err)
			return
		}
	}
	fmt.Println("all")
}

// TestKernelLimitsProcesses checks the limit without control groups, which applies to the program's user
// namespace.
func TestKernelLimitsProcesses(t *testing.T) {
	if !available().Namespaces || !sandbox.CountsProcesses() {
		skip.Lacks(t, "a kernel that counts the processes of each user namespace")
	}
	var started int
	out := readLine(t, run(t, "multiply").stdout)
	if _, err := fmt.Sscanf(out, "%d resource temporarily unavailable", &started); err != nil || started == 0 || started >= mostProcesses {
		t.Errorf("the program started %s processes, with a limit of %d", out, mostProcesses)
	}
}

func escape(args []string) {
	for name, err := range attempts(args[0]) {
		if err == nil {
			fmt.Println("it can", name)
		}
	}
	fmt.Println("wrote", os.WriteFile("own", nil, 0o600))
}

// TestNicePeerRunsPrograms starts a program from a thread of the lowest priority, like a peer started with
// nice(1).
func TestNicePeerRunsPrograms(t *testing.T) {
	runtime.LockOSThread() // permanently: the thread ends with the test
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		t.Fatal(err)
	}
	r := run(t, "exit", "3")
	if e := r.Wait(); e.Code != 3 {
		t.Errorf("got %+v", e)
	}
}

// TestProgramOpensItsOutput covers shells, which open ">/dev/stderr".
func TestProgramOpensItsOutput(t *testing.T) {
	r := run(t, "reopen")
	if out, err := readAll(t, r.stdout), readAll(t, r.stderr); out != "" || err != "err" {
		t.Errorf("got %q, %q", out, err)
	}
}

// TestRestrictiveUmaskDoesNotAffectTheProgram runs a program for an owner with a umask that denies others
// access.
func TestRestrictiveUmaskDoesNotAffectTheProgram(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	r := run(t, "exit", "0")
	if e := r.Wait(); e.Code != 0 || e.Signal != "" {
		t.Errorf("got %+v", e)
	}
}

// mayBeLessNice allows this process, and so its programs, to lower their niceness, if it has that right
// itself.
func mayBeLessNice(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NICE, &before); err != nil {
		t.Fatal(err)
	}
	if syscall.Setrlimit(unix.RLIMIT_NICE, &syscall.Rlimit{Cur: 40, Max: 40}) == nil {
		t.Cleanup(func() { syscall.Setrlimit(unix.RLIMIT_NICE, &before) })
	}
}

func TestO1SandboxHolds(t *testing.T) {
	if available() != (sandbox.Means{Namespaces: true, Landlock: true, Seccomp: true}) {
		skip.Lacks(t, fmt.Sprintf("all sandbox mechanisms; this machine provides only %+v", available()))
	}
	mayBeLessNice(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, means := range map[string]sandbox.Means{
		"all": available(), "namespaces": {Namespaces: true}, "without namespaces": {Landlock: true, Seccomp: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, runWithin(t, means, "escape", secret).stdout)
			outside := strings.Contains(got, "read a file") || strings.Contains(got, "write outside") || strings.Contains(got, "supervisor")
			if means == available() && got != "wrote <nil>\n" || outside {
				t.Error(got)
			}
		})
	}
}
