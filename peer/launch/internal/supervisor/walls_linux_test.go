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
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/sandbox"
)

// attempts are what a program must not get done; each is harmless if it does.
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
	got["be less nice"] = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0)
	got["connect what it has"] = unix.Connect(lineFD, &unix.SockaddrUnix{Name: "/x"})
	got["make a namespace"] = unix.Unshare(unix.CLONE_NEWUSER)
	got["mount"] = unix.Mount("none", ".", "tmpfs", 0, "")
	_, got["read the supervisor's environment"] = os.ReadFile("/proc/1/environ")
	got["trace"] = unix.PtraceAttach(1)
	got["become root"] = syscall.Setuid(0)
	return got
}

func init() { programs["escape"] = escape }

func escape(args []string) {
	for name, err := range attempts(args[0]) {
		if err == nil {
			fmt.Println("it can", name)
		}
	}
	fmt.Println("wrote", os.WriteFile("own", nil, 0o600))
}

// TestNicePeerRunsPrograms starts one by a thread of the lowest priority, as a peer that
// was started with nice(1) does.
func TestNicePeerRunsPrograms(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		t.Fatal(err)
	}
	r := run(t, "exit", "3")
	if e := r.Wait(); e.Code != 3 {
		t.Errorf("got %+v", e)
	}
}

// TestProgramOpensItsOutput is for shells, which do so for ">/dev/stderr".
func TestProgramOpensItsOutput(t *testing.T) {
	r := run(t, "reopen")
	if out, err := readAll(t, r.stdout), readAll(t, r.stderr); out != "" || err != "err" {
		t.Errorf("got %q, %q", out, err)
	}
}

// TestOwnersMaskIsNotTheProgramsRoot runs a program for an owner whose files nobody else may read.
func TestOwnersMaskIsNotTheProgramsRoot(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	r := run(t, "exit", "0")
	if e := r.Wait(); e.Code != 0 || e.Signal != "" {
		t.Errorf("got %+v", e)
	}
}

// mayBeLessNice lets this process, and so its programs, be so at will, if it may itself.
func mayBeLessNice(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NICE, &before); err != nil {
		t.Fatal(err)
	}
	if syscall.Setrlimit(unix.RLIMIT_NICE, &syscall.Rlimit{Cur: 40, Max: 40}) == nil {
		t.Cleanup(func() { syscall.Setrlimit(unix.RLIMIT_NICE, &before) })
	}
}

func TestO1WallsHold(t *testing.T) {
	if walls() != (sandbox.Means{Namespaces: true, Landlock: true, Seccomp: true}) {
		skip.Lacks(t, fmt.Sprintf("all walls; this machine lets a peer build %+v only", walls()))
	}
	mayBeLessNice(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, means := range map[string]sandbox.Means{
		"all": walls(), "namespaces": {Namespaces: true}, "without namespaces": {Landlock: true, Seccomp: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, runWithin(t, means, "escape", secret).stdout)
			outside := strings.Contains(got, "read a file") || strings.Contains(got, "write outside") || strings.Contains(got, "supervisor")
			if means == walls() && got != "wrote <nil>\n" || outside {
				t.Error(got)
			}
		})
	}
}
