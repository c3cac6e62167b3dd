// Package virtualtime runs tests in the virtual time of testing/synctest.
package virtualtime

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test. With the race detector, the test has a single processor. Two goroutines of a bubble that run
// timers at once otherwise share a context of the race detector (bubble.timers.raceCtx in Go 1.26), and the test
// crashes with SIGSEGV in maybeRunChan: in one of 46 runs of a group of eight libp2p hosts. The race detector
// compares the order of accesses, not their times, so it finds the same races on one processor.
//
// The number of processors is that of the whole process. So a test that uses Test must not be parallel to others.
func Test(t *testing.T, f func(*testing.T)) {
	if raceEnabled {
		before := runtime.GOMAXPROCS(1)
		defer runtime.GOMAXPROCS(before)
	}
	synctest.Test(t, f)
}
