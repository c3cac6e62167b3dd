package launch

import (
	"runtime"
	"runtime/debug"
	"time"
)

// restAfter is how long after its last job a peer is idle: what was still on its way then has gone.
const restAfter = 3 * time.Second

// rest gives the owner back at once what the peer has taken for jobs, and once more when it is idle.
func (s *Service) rest() {
	giveBack()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.resting.Reset(restAfter)
	}
}

// giveBack gives back memory. What pools keep, such as buffers of files that are on their way, they
// let go of the second time only.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// newRest is the timer of a service that may become idle, which has not been started.
func newRest(s *Service) *time.Timer {
	t := time.AfterFunc(restAfter, func() {
		if !s.enter() {
			return
		}
		defer s.serving.Done()
		if s.idle() {
			giveBack()
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
