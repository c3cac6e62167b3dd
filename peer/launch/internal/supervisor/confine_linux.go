package supervisor

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/sandbox"
)

// rawNiceness less what getpriority(2) returns is a niceness.
const rawNiceness = 20

// confine restricts the process that is about to become a program. It is called last
// before execve; what it opens must close on exec.
func confine(p sandbox.Plan, l Limits) error {
	// A peer that is nicer has nicer programs, which may not be made less so.
	if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || rawNiceness-now < l.Niceness {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, l.Niceness); err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
	}
	for _, r := range allowances {
		if err := allow(r.resource, r.most); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	if l.Processes > 0 && p.Means.Namespaces && sandbox.CountsProcesses() {
		if err := allow(unix.RLIMIT_NPROC, l.Processes); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return sandbox.Enter(p)
}

// allowances are of what the owner has configured nothing. What counts for all processes of a
// user would be taken from the owner's own programs where the peer is an ordinary user.
var allowances = []struct {
	name     string
	resource int
	most     uint64
}{
	// No core file is written of 1 byte, nor of 0. But with 0 the kernel starts a core handler (core_pattern(5)), as
	// root on what a stranger has made; with 1 it does not. A program that is not dumpable would be safe from that,
	// too, but every execve makes it dumpable again, and a peer that is an ordinary user could not look into its
	// descriptors to measure its files.
	{"core files", unix.RLIMIT_CORE, 1},
	{"real-time priority", unix.RLIMIT_RTPRIO, 0},
	{"priority by request", unix.RLIMIT_NICE, 0},         // of an owner who may raise his own
	{"timers and signals", unix.RLIMIT_SIGPENDING, 256},  // of a user
	{"locked memory", unix.RLIMIT_MEMLOCK, 64 << 10},     // of a user
	{"bytes of message queues", unix.RLIMIT_MSGQUEUE, 0}, // of a user
}

// allow lowers a resource limit.
func allow(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most})
}
