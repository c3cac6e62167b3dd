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
func confine(p sandbox.Plan, niceness int) error {
	// A peer that is nicer has nicer programs, which may not be made less so.
	if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || rawNiceness-now < niceness {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
			return fmt.Errorf("lower priority: %w", err)
		}
	}
	for _, r := range allowances {
		if err := allow(r.resource, r.most); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
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
	{"core files", unix.RLIMIT_CORE, 0}, // as large as the program's memory
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
