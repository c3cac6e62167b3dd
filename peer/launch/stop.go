package launch

import (
	"context"
	"errors"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Departure tells how a job has left this peer.
type Departure string

// The departures.
const (
	HandedOver Departure = "handed over" // other processes do the work of those here
	CutShort   Departure = "ended"       // its processes here were ended
	Over       Departure = "over"        // the job was already over, or had nothing here
)

// errStopped is the reason that people read when an owner stops a job, after the name of the peer.
var errStopped = errors.New("its owner has stopped the job here")

// errReclaimed is the reason that people read when a job ends because the owner takes the machine back.
var errReclaimed = errors.New("its owner has reclaimed the machine")

// EndAll ends all jobs of other submitters on this peer and tells those submitters why. It returns when
// nothing of the jobs is left, or when ctx ends.
func (s *Service) EndAll(ctx context.Context) {
	for {
		s.mu.Lock()
		gone, left := s.gone, []*job(nil)
		for _, j := range s.jobs {
			if j.submitter != s.host.ID() {
				left = append(left, j)
			}
		}
		s.mu.Unlock()
		for _, j := range left {
			j.do(func() { j.cutShort(errReclaimed) })
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return
		}
	}
}

// Stop removes a job of the given submitter from this peer, and returns when nothing of it is left. A job
// that runs with replicas is handed over to other peers, if that succeeds in the given time. Otherwise its
// processes are ended, and its submitter is told why. If ctx ends first, the removal continues.
//
//	owner --> Stop -- handed over? -- yes ----------------------> gone
//	                       '-- no --> Exited(why) --> submitter --> Stop, or 5 s --> gone
func (s *Service) Stop(ctx context.Context, id string, submitter p2ppeer.ID, within time.Duration) (Departure, error) {
	j, ok := s.lookup(id)
	if !ok || j.submitter != submitter {
		return Over, nil
	}
	j.do(func() { j.stop(within) })
	for {
		s.mu.Lock()
		here, gone := s.jobs[id] == j, s.gone
		s.mu.Unlock()
		if !here {
			return j.departure(), nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// stop ends the job here within the given time, or at once if the job has no replicas or has not begun.
func (j *job) stop(within time.Duration) {
	if within <= 0 || j.spec.R == 1 || j.init != initReturns {
		j.cutShort(errStopped)
		return
	}
	if j.stopBy.IsZero() {
		j.stopBy = time.Now().Add(within)
	}
	j.migrate()
}

// cutShort ends the job's processes here and tells the submitter why. If the job is staged, the submitter
// learns that when it starts the job, since it expects no message earlier.
func (j *job) cutShort(why error) {
	if j.cut != nil {
		return
	}
	j.cut, j.stopBy = why, time.Now()
	switch j.state {
	case Staging:
		j.refuse(prepared(why, nil), why)
	case Starting:
		j.refuse(started(why, nil), why)
	case Running:
		j.endAll(why.Error())
	}
}

// endAtDeadline ends a job that is here longer than its owner wants, after the submitter has had time to
// end it.
func (j *job) endAtDeadline() {
	switch late := time.Since(j.stopBy); {
	case j.stopBy.IsZero() || late < 0:
	case j.cut == nil:
		j.cutShort(errStopped)
	case late > dismissTimeout:
		j.end(j.cut)
	}
}

// departure returns how the job left, once nothing of it remains.
func (j *job) departure() Departure {
	switch {
	case j.cut != nil:
		return CutShort
	case j.leaving:
		return HandedOver
	}
	return Over
}
