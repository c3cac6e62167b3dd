package launch

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// Partners returns the peers of all jobs that are staged or have begun here, and for how long each may be
// silent.
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

// shareNeeds lets the service know whom the job needs.
func (j *job) shareNeeds() {
	needs := j.needs()
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.partners = needs
}

// needs returns whom the job needs, and for how long each may be silent: its submitter, who
// has a process in it, and who agrees on the views. While it is prepared there is nobody but
// the submitter, and nobody until it has begun then.
func (j *job) needs() map[p2ppeer.ID]time.Duration {
	if j.keys == nil && !j.preparing() {
		return nil
	}
	partners := map[p2ppeer.ID]time.Duration{j.submitter: j.hang}
	for p := range j.members.addrs {
		if j.views != nil && j.views.Votes(p) {
			partners[p] = j.hang
		}
	}
	for process, p := range j.members.peerOf {
		if j.view.Has(process) {
			partners[p] = j.hang
		}
	}
	delete(partners, j.service.host.ID())
	return partners
}

// Renew has the channels to a peer opened anew, after the connection with it was: they may
// wait for a link that was cut, or for an address that is no more.
func (s *Service) Renew(peer p2ppeer.ID) {
	s.retry(peer)
	s.mu.Lock()
	jobs := slices.Collect(maps.Values(s.jobs))
	s.mu.Unlock()
	for _, j := range jobs {
		j.do(func() { j.renew(peer) })
	}
}

func (j *job) renew(peer p2ppeer.ID) {
	if s := j.seekings[peer]; s != nil {
		s.forgive()
	}
	for id := range j.channels {
		if p := j.local[id.from]; p != nil && j.members.peerOf[id.to] == peer {
			p.tell(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
		}
	}
}
