package filetransfer

import (
	"os"
	"time"
)

// Pin protects the contents from eviction until Unpin of the same job (promise T4). They may still be
// missing; a later Fetch then brings them in pinned. Pin is idempotent.
func (s *Store) Pin(job string, contents []Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range contents {
		s.pin(job, d)
	}
}

// pin pins one content. The caller holds mu.
func (s *Store) pin(job string, d Digest) {
	pins := s.jobs[job]
	if pins == nil {
		pins = make(jobPins)
		s.jobs[job] = pins
	}
	first := s.pins[d] == 0
	if _, ok := pins[d]; !ok {
		pins[d] = struct{}{}
		s.pins[d]++
	}
	if it, ok := s.items[d]; ok && it.complete {
		s.use(it)
		if first {
			s.stamp(d, it)
		}
	}
}

// Unpin removes all pins of the job. The contents stay until their space is needed.
func (s *Store) Unpin(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.jobs[job] {
		if s.pins[d]--; s.pins[d] > 0 {
			continue
		}
		delete(s.pins, d)
		if it, ok := s.items[d]; ok && it.complete {
			s.stamp(d, it)
		}
	}
	delete(s.jobs, job)
}

// stamp sets the file's modification time to the time of its use, which carries the eviction order over
// to the next process. It does so at most once per stampEvery, to save system calls for jobs with many
// small files. Serve refuses a file whose modification time has changed, and may offer any pinned
// content. So content is stamped only when the first job pins it and when the last job unpins it. The
// caller holds mu.
func (s *Store) stamp(d Digest, it *item) {
	if now := time.Now(); now.Sub(it.stamped) >= stampEvery {
		it.stamped = now
		_ = os.Chtimes(s.Path(d), now, now) // a failure only makes a later eviction choice worse
	}
}
