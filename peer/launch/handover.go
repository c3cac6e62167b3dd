package launch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// HandOver has the jobs here go on elsewhere, and returns when those are gone that can, or ctx
// ends. The submitter of each is asked to do without the processes here: it takes them out of
// the view, masters among them, as soon as their ranks have other replicas that are up to
// date, and brings those into being that are missing. Jobs without replicas cannot; nor can this
// peer's own, whose submitter would go with it.
//
//	owner --> Leaving(process) --> submitter: another one? --- yes --> view without it --> Stop
//	                                             '-- no: recruits one, which catches up --^
//
// What is said holds for the rest of each job: one that could not go in time goes later.
func (s *Service) HandOver(ctx context.Context) {
	for tick := time.NewTicker(tickPeriod); ; {
		s.mu.Lock()
		gone := s.gone
		var able []*job
		for _, j := range s.jobs {
			if s.movable(j) {
				able = append(able, j)
			}
		}
		s.mu.Unlock()
		for _, j := range able {
			j.do(j.moveAway)
		}
		if len(able) == 0 {
			tick.Stop()
			return
		}
		select {
		case <-gone:
		case <-tick.C: // others may have come, which had been promised slots
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// Trim hands over the newest jobs that can go on elsewhere, so that no more than so many slots
// are taken. It does not wait for that.
func (s *Service) Trim(slots int) {
	s.mu.Lock()
	jobs := slices.SortedFunc(maps.Values(s.jobs), func(a, b *job) int { return b.since.Compare(a.since) })
	taken, of := 0, make(map[*job]int)
	for _, j := range jobs {
		of[j] = len(j.order)
		taken += of[j]
	}
	s.mu.Unlock()
	for _, j := range jobs {
		if taken > slots && s.movable(j) {
			taken -= of[j]
			j.do(j.moveAway)
		}
	}
}

// movable reports whether a job may go on without this peer.
func (s *Service) movable(j *job) bool { return j.spec.R > 1 && j.submitter != s.host.ID() }

// moveAway has the job go on elsewhere from now on.
func (j *job) moveAway() {
	j.leaving = true
	j.depart()
}

// dismissTimeout is how long a submitter may take to end the job's part at a peer none of whose
// processes is in the view any more. It is longer where the others may not be a majority without it.
const dismissTimeout = 5 * time.Second

// depart says, once the job has begun, which processes are to go, and ends its part when they have.
func (j *job) depart() {
	if !j.leaving || !j.begun || j.ended != nil {
		return
	}
	needed := false
	for _, id := range j.order {
		p := j.local[id]
		if !p.expelled && !p.leaving {
			p.leaving = true
			j.say(leaving(id))
		}
		needed = needed || !p.expelled
	}
	switch {
	case needed:
	case j.empty.IsZero():
		j.empty = time.Now()
	case time.Since(j.empty) > dismissTimeout && (j.views == nil || !j.voting()):
		j.end(errors.New("handed over"))
	}
}
