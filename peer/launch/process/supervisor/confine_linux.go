package supervisor

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// rawNiceness minus the result of the raw getpriority(2) call is the niceness.
const rawNiceness = 20

// confine restricts the process that is about to become a program. It is called last before execve.
// Descriptors that it opens must be closed on exec.
func confine(p sandbox.Plan, l Limits) error {
	// If the peer has a higher niceness, its programs inherit that, and it must not be lowered.
	if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || rawNiceness-now < l.Niceness {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, l.Niceness); err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
	}
	for _, r := range fixedLimits {
		if err := lowerLimit(r.resource, r.most); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	if l.Processes > 0 && p.Means.Namespaces && sandbox.CountsProcesses() {
		if err := lowerLimit(unix.RLIMIT_NPROC, l.Processes); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return sandbox.Enter(p)
}

// fixedLimits are fixed limits, independent of the owner's configuration. The resources marked "per user"
// are counted over all processes of a user. Without a limit, a program could use up the owner's share if
// the peer runs as an ordinary user.
var fixedLimits = []struct {
	name     string
	resource int
	most     uint64
}{
	// With a limit of 0 or 1 bytes, no core file is written. But with 0 the kernel starts a core handler
	// (core_pattern(5)), as root and on data of a stranger; with 1 it does not. A program that is not
	// dumpable would be safe from that too. But every execve makes it dumpable again, and a peer that is an
	// ordinary user could not inspect its descriptors to measure its files.
	{"core files", unix.RLIMIT_CORE, 1},
	{"real-time priority", unix.RLIMIT_RTPRIO, 0},
	{"priority by request", unix.RLIMIT_NICE, 0},         // for owners who may raise their own priority
	{"timers and signals", unix.RLIMIT_SIGPENDING, 256},  // per user
	{"locked memory", unix.RLIMIT_MEMLOCK, 64 << 10},     // per user
	{"bytes of message queues", unix.RLIMIT_MSGQUEUE, 0}, // per user
}

func lowerLimit(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most})
}
