package filetransfer

import (
	"os"
	"time"
)

// Pin keeps the contents from eviction until Unpin of the same job (promise
// T4). They may still be missing: a Fetch that brings them later finds them
// pinned. Pinning twice is the same as once.
func (s *Store) Pin(job string, contents []Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range contents {
		s.pin(job, d)
	}
}

// pin pins one content. Called with mu held.
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

// Unpin takes back all pins of the job. The contents stay until their space is
// needed.
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

// stamp gives the file the time of its use, which carries the order of eviction
// over to the next process. Once an hour is exact enough for that, and spares a
// job of many small files as many system calls. What a job has pinned may be on offer, and a file that
// has another time is not served any more (Serve): so it is stamped when the first job pins it, and
// when the last one does no longer. Called with mu held.
func (s *Store) stamp(d Digest, it *item) {
	if now := time.Now(); now.Sub(it.stamped) >= stampEvery {
		it.stamped = now
		_ = os.Chtimes(s.Path(d), now, now) // a failure costs a worse choice later, no more
	}
}
