package supervisor

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/sandbox"
)

// niceness of programs: a guest gives way to whatever the owner does, and still
// gets an idle machine whole. More than 10 would starve it beside one busy
// browser tab.
const niceness = 10

// rawNiceness less what getpriority(2) returns is a niceness.
const rawNiceness = 20

// confine restricts the process that is about to become a program. It is called last
// before execve; what it opens must close on exec.
func confine(p sandbox.Plan) error {
	// A peer that is nicer has nicer programs, which may not be made less so.
	if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || rawNiceness-now < niceness {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
	}
	for name, resource := range map[string]int{
		"core files":          unix.RLIMIT_CORE, // as large as the program's memory
		"real-time priority":  unix.RLIMIT_RTPRIO,
		"priority by request": unix.RLIMIT_NICE, // of an owner who may raise his own
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{}); err != nil {
			return fmt.Errorf("forbid %s: %w", name, err)
		}
	}
	return sandbox.Enter(p)
}
