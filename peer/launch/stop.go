package launch

import (
	"context"
	"errors"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Departure is how a job has gone from here.
type Departure string

// The departures.
const (
	HandedOver Departure = "handed over" // others do what its processes here did
	CutShort   Departure = "ended"       // its processes here were ended
	Over       Departure = "over"        // it was already, or had nothing here
)

// errStopped is what people read whose job an owner does not want any more, after who says so.
var errStopped = errors.New("its owner has stopped the job here")

// errTakenBack is what people read whose job has to end since the owner takes the machine back.
var errTakenBack = errors.New("its owner has taken the machine back")

// EndAll ends what runs here for other peers, tells their submitters why, and returns when nothing of it is
// left, or when ctx ends.
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
			j.do(func() { j.cutShort(errTakenBack) })
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

// Stop has a job of that submitter be gone from here, and returns when nothing of it is left. One that runs with replicas
// is handed over, if that can be within so long; else its processes are ended, and its submitter is told why.
// When ctx ends before, the job goes all the same.
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

// stop ends the job here after so long at the latest, or at once if nobody else does what it does.
func (j *job) stop(within time.Duration) {
	if within <= 0 || j.spec.R == 1 || !j.begun {
		j.cutShort(errStopped)
		return
	}
	if j.stopBy.IsZero() {
		j.stopBy = time.Now().Add(within)
	}
	j.moveAway()
}

// cutShort ends what runs here, and tells the submitter why. One that has staged the job hears it when it
// starts it: before, it expects no word.
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

// overstay ends a job that is here longer than its owner wants. The submitter has had time to end it.
func (j *job) overstay() {
	switch late := time.Since(j.stopBy); {
	case j.stopBy.IsZero() || late < 0:
	case j.cut == nil:
		j.cutShort(errStopped)
	case late > dismissTimeout:
		j.end(j.cut)
	}
}

// departure says how the job has gone, once nothing of it is left.
func (j *job) departure() Departure {
	switch {
	case j.cut != nil:
		return CutShort
	case j.leaving:
		return HandedOver
	}
	return Over
}
