package supervisor

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// niceness of programs: a guest gives way to whatever the owner does, and still
// gets an idle machine whole. More than 10 would starve it beside one busy
// browser tab.
const niceness = 10

// confine restricts the process that is about to become a program. It is the
// one place for that: limits, and later namespaces, Landlock, seccomp and
// cgroups. It is called last before execve; what it opens must close on exec.
func confine() error {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("lower priority: %w", err)
	}
	// A core file would be as large as the program's memory.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}
