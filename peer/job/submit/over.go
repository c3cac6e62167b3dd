package submit

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// The submitter gives up a peer that was stopped or cut off. The peer may not learn this, and its
// part of the job then keeps its slots. After it reconnects, the peer asks whether the job is over.

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

// Partners returns the peers of all jobs that are staged or have begun, and how long each may be
// silent.
func (s *Submitter) Partners() map[p2ppeer.ID]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[p2ppeer.ID]time.Duration)
	for _, peers := range maps.All(s.partners) {
		for _, p := range peers {
			out[p] = s.cfg.Hang
		}
	}
	delete(out, s.cfg.Host.ID())
	return out
}

func (s *Submitter) setPartners(job string, peers []p2ppeer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partners[job] = peers
}
