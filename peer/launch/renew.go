package launch

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Partners returns the peers that jobs here need, and how long each may be silent. It includes the jobs
// that are staged or have begun.
func (s *Service) Partners() map[p2ppeer.ID]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[p2ppeer.ID]time.Duration)
	for _, j := range s.jobs {
		for p, bears := range j.partners {
			out[p] = max(out[p], bears)
		}
	}
	return out
}

// shareNeeds publishes to the service the peers that the job needs.
func (j *job) shareNeeds() {
	needs := j.needs()
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.partners = needs
}

// needs returns the peers that the job needs, and how long each may be silent. These are its submitter, the
// peers with processes in the view, and the voters of the view group. While the job is prepared, it needs
// only the submitter. Between Start and Begin it needs none.
func (j *job) needs() map[p2ppeer.ID]time.Duration {
	if j.init == awaitsBegin && !j.preparing() {
		return nil
	}
	partners := map[p2ppeer.ID]time.Duration{j.submitter: j.detection.hang}
	for p := range j.members.Addrs {
		if j.views.votes(p) {
			partners[p] = j.detection.hang
		}
	}
	for process, p := range j.members.PeerOf {
		if j.views.current.Has(process) {
			partners[p] = j.detection.hang
		}
	}
	delete(partners, j.service.host.ID())
	return partners
}

// Renew makes processes reopen their channels to a peer, after the connection to it was renewed. The
// channels may wait for a broken link, or for an address that has changed.
func (s *Service) Renew(peer p2ppeer.ID) {
	s.switchboard.RetryDirect(peer)
	s.mu.Lock()
	jobs := slices.Collect(maps.Values(s.jobs))
	s.mu.Unlock()
	for _, j := range jobs {
		j.do(func() { j.board.Renew(peer) })
	}
}
