package job

import (
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A peer that was stopped or cut off is given up, and may not hear that: its part of the job
// keeps its slots. When it is connected again it asks.

// maxOver bounds the jobs that a submitter remembers to be over.
const maxOver = 1024

// setOver notes that a job is over at every peer.
func (s *Submitter) setOver(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = append(s.over, job)
	s.over = s.over[max(0, len(s.over)-maxOver):]
}

// isOver reports whether the part that a peer has in a job is over: the job is, or goes on
// without the peer. Of a job that another process of this submitter began, it knows nothing.
func (s *Submitter) isOver(peer p2ppeer.ID, job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.over, job) {
		return true
	}
	partners := s.partners[job]
	return len(partners) > 0 && !slices.Contains(partners, peer)
}
