package submit

import (
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A peer that was stopped or cut off is given up, and may not learn that. Its part of the job keeps
// its slots. When the peer is connected again, it asks whether the job is over.

// maxOver limits the number of finished jobs that a submitter remembers.
const maxOver = 1024

// setOver records that a job is over at every peer.
func (s *Submitter) setOver(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = append(s.over, job)
	s.over = s.over[max(0, len(s.over)-maxOver):]
}

// isOver reports whether a peer's part in a job is over, because the job is over or continues
// without the peer. It returns false for unknown jobs, such as those of another process of this
// submitter.
func (s *Submitter) isOver(peer p2ppeer.ID, job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.over, job) {
		return true
	}
	partners := s.partners[job]
	return len(partners) > 0 && !slices.Contains(partners, peer)
}
