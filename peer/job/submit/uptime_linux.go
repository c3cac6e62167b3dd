package submit

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the time since this machine booted, including suspension. The user cannot set that
// clock.
func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every supported kernel has this clock
	return time.Duration(t.Nano())
}
