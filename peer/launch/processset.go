package launch

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A processSet holds the processes of a job on this peer.
type processSet struct {
	order    []view.Process // in the order requested; written under service.mu
	local    map[view.Process]*process
	dropping map[view.Process]reservation.Key // added processes that are being ended, see dropProcess
	turn     int                              // index of the process and stream that may send output next
}

// instances returns the running processes.
func (s *processSet) instances() (all []*instance) {
	for _, id := range s.order {
		if p := s.local[id]; p.live != nil && p.exit == nil {
			all = append(all, p.live)
		}
	}
	return all
}

// allEnded reports whether all processes have ended.
func (s *processSet) allEnded() bool {
	for _, p := range s.local {
		if p.exit == nil {
			return false
		}
	}
	return true
}

// allKilled reports whether all processes have ended or are being killed.
func (s *processSet) allKilled() bool {
	for _, p := range s.local {
		if !p.killed && p.exit == nil {
			return false
		}
	}
	return true
}

// endAll ends all processes.
func (s *processSet) endAll(reason string) {
	for _, p := range s.local {
		p.end(reason)
	}
}

// endWaiting ends the processes that wait to join.
func (s *processSet) endWaiting(reason string) {
	for _, p := range s.local {
		if p.waitsToJoin() {
			p.end(reason)
		}
	}
}

// closeAll kills all processes, and returns when nothing of them is left.
func (s *processSet) closeAll() {
	for _, p := range s.local {
		p.kill() // all at once, before waiting for each
	}
	for _, p := range s.local {
		p.close()
	}
}

// slots returns the keys of the slots of added processes.
func (s *processSet) slots() (keys []reservation.Key) {
	for _, p := range s.local {
		if p.added {
			keys = append(keys, p.slot)
		}
	}
	return keys
}

// waiting reports whether an added process does not run yet.
func (s *processSet) waiting() bool {
	for _, p := range s.local {
		if p.added && p.live == nil {
			return true
		}
	}
	return false
}

// ofRank returns the process of a rank that is here and has not failed in the view, if there is one.
func (s *processSet) ofRank(rank int) (view.Process, bool) {
	for id, p := range s.local {
		if id.Rank == rank && !p.failedInView {
			return id, true
		}
	}
	return view.Process{}, false
}

// emitted drops the records that the user has received.
func (s *processSet) emitted(m *jobpb.Emitted) {
	for _, id := range s.order {
		if id.Rank == int(m.Rank) {
			s.local[id].emitted([streams]uint64{m.Stdout, m.Stderr})
		}
	}
}

// rewind makes this peer send the output that the user has not received again.
func (s *processSet) rewind() {
	for _, p := range s.local {
		p.rewind()
	}
}

// nextOutput returns the next output for the submitter, or nil. The output leaders take turns.
func (s *processSet) nextOutput() *jobpb.FromPeer {
	for range streams * len(s.order) {
		s.turn = (s.turn + 1) % (streams * len(s.order))
		p, stream := s.local[s.order[s.turn/streams]], s.turn%streams
		if !p.leads || p.live == nil {
			continue
		}
		if b, ok := p.out[stream].box.Next(); ok {
			return outputOf(p.id, stream+1, b)
		}
	}
	return nil
}
