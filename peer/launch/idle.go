package launch

import (
	"runtime"
	"runtime/debug"
	"time"
)

// idleAfter is how long after its last job a peer is idle: what was still on its way then has gone.
const idleAfter = 3 * time.Second

// giveMemoryBack gives the owner back at once what the peer has taken for jobs, and once more when it is idle.
func (s *Service) giveMemoryBack() {
	freeMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.idleTimer.Reset(idleAfter)
	}
}

// freeMemory gives back what is not in use. What pools keep, such as buffers of files that are on their way, they
// let go of the second time only.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}

// newIdleTimer is the timer of a service that may become idle, which has not been started.
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

// idle reports whether no job is here.
func (s *Service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs) == 0
}
