package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable is this program, also when its file has been replaced meanwhile.
const executable = "/proc/self/exe"

// Own is that as a Command's Program.
const Own = executable

// adoptOrphans has orphans of the program become children of this process. Emulators of other
// processors do not know how; native programs of strangers are not taken there.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != unix.EINVAL {
		return err
	}
	return nil
}

// supervisorAttributes keeps the terminal's Ctrl-C from the supervisor, and has
// the kernel wake it when its peer ends: one that is stopped would not see that.
//
// A process group, not a session, for the program's sake, which is born into the same: see Session.
// With one each, ranks that share a processor could not hand it to one another by yielding, a message between
// them would take a time slice, and their niceness would count for nothing.
func supervisorAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}

// leaveTerminal gives up the peer's terminal, if it has one, for this process
// and its children: only the leader of its session could get it back. So no
// program reads or writes there.
func leaveTerminal() error {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // there is none
	}
	defer syscall.Close(fd)
	return unix.IoctlSetInt(fd, unix.TIOCNOTTY, 0)
}

// programAttributes puts the program into a process group of its own, and has
// the kernel kill it when the supervisor's forking thread ends.
func programAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// resident is the most memory that a process had, in bytes.
func resident(u syscall.Rusage) int64 { return int64(u.Maxrss) << 10 } //nolint:unconvert // it has 32 bits where words do

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// closeOnExec keeps every descriptor but the standard three from the program:
// the supervisor's own, and any that a library in the peer left open.
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

// sweep kills the program and all its descendants, and returns when the last
// one is reaped, or when it has been given up. A process that forks faster than it
// is found is found in a later turn: each turn kills all that there are.
func sweep(program int, childless <-chan struct{}, givenUp <-chan time.Time) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		killAll(program)
		select {
		case <-childless:
			return
		case <-givenUp:
			return
		case <-time.After(wait):
		}
	}
}

// killAll kills this process's descendants, the program among them. The first process of a PID
// namespace has all others there below it, and /proc tells of others.
func killAll(int) {
	supervisor := os.Getpid()
	if supervisor == 1 {
		syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for _, pid := range descendants(supervisor) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// haltAll stops all in this process's PID namespace, those too that are just being started: the kernel
// takes a signal to all for one moment. Where there is none it stops nobody.
func haltAll() Born {
	if os.Getpid() != 1 {
		return 0
	}
	syscall.Kill(-1, syscall.SIGSTOP) // an error means that there is nobody
	return Born(lastGiven())
}

// descendants returns the processes below pid.
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

// parent reads a process and its parent from its stat file: "pid (name) state
// ppid ...", where the name may hold anything.
func parent(stat string) (pid, ppid int, ok bool) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0, 0, false // it has ended
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
	ppid, err2 := strconv.Atoi(string(fields[1]))
	return pid, ppid, err1 == nil && err2 == nil
}

// KillStale kills the processes that run in or from a folder, for want of a
// supervisor who would, and returns when they are gone.
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

// runningIn returns the processes whose executable or working folder is folder
// or below it. Those that have ended have neither.
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
