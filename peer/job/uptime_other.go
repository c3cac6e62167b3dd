//go:build !linux

package job

import "time"

var loaded = time.Now()

// uptime is how long this process has been there. The time in which the machine is suspended
// may be missing.
func uptime() time.Duration { return time.Since(loaded) }
