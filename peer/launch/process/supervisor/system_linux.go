package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable is the path of this program, which stays valid if its file is replaced.
const executable = "/proc/self/exe"

// Own is this program, as the Program of a Command.
const Own = executable

// adoptOrphans makes orphans of the program children of this process. User-mode emulators of other
// processors do not support that; on those, strangers' native programs are refused.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != unix.EINVAL {
		return err
	}
	return nil
}

// supervisorAttributes shields the supervisor from the terminal's Ctrl-C. It also makes the kernel resume
// the supervisor when its peer ends: a stopped supervisor would not notice that.
//
// It creates a process group and no session, because the program is created in the same session, see
// Session. With one session each, ranks that share a processor could not hand it to one another by
// yielding. A message between them would take a time slice, and their niceness would have no effect.
func supervisorAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}

// leaveTerminal gives up the peer's terminal, if there is one, for this process and its children. Only the
// leader of the session could get it back, so no program reads or writes there.
func leaveTerminal() error {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // there is no terminal
	}
	defer syscall.Close(fd)
	return unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0)
}

// programAttributes puts the program into its own process group, and makes the kernel kill it when the
// supervisor's forking thread ends.
func programAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// resident returns the peak resident memory of a process, in bytes.
func resident(u syscall.Rusage) int64 { return int64(u.Maxrss) << 10 } //nolint:unconvert // Maxrss has 32 bits on 32-bit processors

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// closeOnExec marks every descriptor except the standard three as close-on-exec: the supervisor's own, and
// any that a library in the peer left open.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// signalAll sends a signal to this process's descendants, the program included. The first process of a PID
// namespace signals all others in it, since /proc may show another namespace. The kernel delivers that signal
// to all of them atomically, including those that are being created.
func signalAll(_ int, s syscall.Signal) {
	supervisor := os.Getpid()
	if supervisor == 1 {
		syscall.Kill(-1, s) // an error means that there are none
		return
	}
	for _, pid := range descendants(supervisor) {
		syscall.Kill(pid, s)
	}
}

func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if child, parent, ok := parent(path); ok {
			children[parent] = append(children[parent], child)
		}
	}
	below := children[pid]
	for i := 0; i < len(below); i++ {
		below = append(below, children[below[i]]...)
	}
	return below
}

// KillStale kills all processes that run in a folder or from it, and returns when they are gone. It is
// meant for processes whose supervisor may have been killed. It gives up after sweepTimeout.
func KillStale(folder string) {
	for end := time.Now().Add(sweepTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stale := runningIn(folder)
		if len(stale) == 0 {
			return
		}
		for _, pid := range stale {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// runningIn returns the processes whose executable or working folder is folder or below it. Processes that
// have ended have neither.
func runningIn(folder string) []int {
	var found []int
	for _, kind := range []string{"exe", "cwd"} {
		links, _ := filepath.Glob("/proc/[0-9]*/" + kind)
		for _, link := range links {
			target, err := os.Readlink(link)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			if err == nil && pid != os.Getpid() && strings.HasPrefix(target+"/", folder+"/") {
				found = append(found, pid)
			}
		}
	}
	return found
}
