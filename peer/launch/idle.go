package launch

import (
	"runtime"
	"runtime/debug"
	"time"
)

// idleAfter is the time after its last job until a peer counts as idle. Transfers in progress have ended by
// then.
const idleAfter = 3 * time.Second

// freeMemory returns unused memory to the system. Pools, such as buffers of file transfers, release their
// memory only at the second call.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}

// newIdleTimer returns the stopped timer of a service that may become idle.
func newIdleTimer(s *Service) *time.Timer {
	t := time.AfterFunc(idleAfter, func() {
		if !s.enter() {
			return
		}
		defer s.serving.Done()
		if s.idle() {
			freeMemory()
			s.session.Close()
		}
	})
	t.Stop()
	return t
}
