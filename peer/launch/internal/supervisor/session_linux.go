package supervisor

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sessionNiceness is that of a whole session beside others, on a kernel that has sessions compete:
// a thirtieth of the processors when somebody else wants them all. The peer needs some of it.
const sessionNiceness = "15"

// GiveWay makes the session of this process give way to others, if it leads it, as p2pboot --detach
// and services do. Where there are no control groups the scheduler (sched_autogroup, see sched(7))
// treats each session as one competitor, and the niceness of programs counts within theirs only.
// Without that, there is nothing to do.
func GiveWay() {
	if leader, err := unix.Getsid(0); err != nil || leader != os.Getpid() {
		return
	}
	for range 5 { // of all who are not root the kernel hears one in a tenth of a second
		if err := os.WriteFile("/proc/self/autogroup", []byte(sessionNiceness), 0); !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
