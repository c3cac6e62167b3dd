package launch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// HandOver migrates the jobs here to other peers. It returns when all jobs that can migrate have left, or
// when ctx ends. It asks each submitter to do without the processes here. The submitter removes them from
// the view, masters included, as soon as their ranks have other replicas that are up to date, and creates
// missing replicas. Jobs without replicas cannot migrate, nor can this peer's own jobs, whose submitter
// would leave with them.
//
//	owner --> Leaving(process) --> submitter: another one? --- yes --> view without it --> Stop
//	                                             '-- no: recruits one, which catches up --^
//
// The request holds for the rest of each job: a job that could not leave in time leaves later.
func (s *Service) HandOver(ctx context.Context) {
	for tick := time.NewTicker(tickPeriod); ; {
		s.mu.Lock()
		gone := s.gone
		var able []*job
		for _, j := range s.jobs {
			if s.canMigrate(j) {
				able = append(able, j)
			}
		}
		s.mu.Unlock()
		for _, j := range able {
			j.do(j.migrate)
		}
		if len(able) == 0 {
			tick.Stop()
			return
		}
		select {
		case <-gone:
		case <-tick.C: // new jobs may have come, with slots promised earlier
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// Trim hands over the newest jobs that can migrate, until at most the given number of slots is in use. It
// does not wait for them to leave.
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
		if taken > slots && s.canMigrate(j) {
			taken -= of[j]
			j.do(j.migrate)
		}
	}
}

// canMigrate reports whether a job can continue without this peer.
func (s *Service) canMigrate(j *job) bool { return j.spec.R > 1 && j.submitter != s.host.ID() }

// migrate makes the job migrate from now on.
func (j *job) migrate() {
	j.leaving = true
	j.depart()
}

// dismissTimeout is how long a submitter may take to end the job's part at a peer, once none of that peer's
// processes is in the view. The job stays longer if the view group may lack a majority without this peer.
const dismissTimeout = 5 * time.Second

// depart tells the submitter, once the job has begun, which processes are to leave. It ends the job here
// after they have left the view.
func (j *job) depart() {
	if !j.leaving || j.init != initReturns || j.ended != nil {
		return
	}
	needed := false
	for _, id := range j.order {
		p := j.local[id]
		if !p.failedInView && !p.leaving {
			p.leaving = true
			j.send(leaving(id))
		}
		needed = needed || !p.failedInView
	}
	switch {
	case needed:
	case j.empty.IsZero():
		j.empty = time.Now()
	case time.Since(j.empty) > dismissTimeout && (j.views == nil || !j.voting()):
		j.end(errors.New("handed over"))
	}
}
