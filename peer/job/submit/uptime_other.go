//go:build !linux

package submit

import "time"

var loaded = time.Now()

// uptime returns the time since this process started. It may not include the time in which the
// machine was suspended.
func uptime() time.Duration { return time.Since(loaded) }
