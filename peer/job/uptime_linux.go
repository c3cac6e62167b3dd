package job

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long this machine has been up, suspended or not. Nobody sets that clock.
func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every kernel that this runs on has it
	return time.Duration(t.Nano())
}
