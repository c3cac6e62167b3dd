package launch

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// What the owner of this machine may require of the jobs here. Type reclaim decides how a job complies.

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
		of[j] = len(j.here.order)
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
			return j.reclaim.departure(), nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// A Pause is the owner's rule for the time in which the owner needs the machine. Jobs that do not run yet
// end here, since they can begin elsewhere. Jobs with replicas are migrated (HandOver). The processes of
// all other jobs, and of those that cannot be migrated soon, are suspended, and are ended if that lasts too
// long. This peer neither fetches files nor serves them to other peers. The owner's own jobs continue.
//
//	owner --> Pause(rule) --> guard: all stopped -> Paused(rule) --> submitter
//	                             |-- Pause() ----> they resume ---> Paused() --'
//	                             '-- Most later -> they end ------> Exited(why)
//
// Suspended processes do not count as hung: this peer asks them for signs of life, knows that they are
// suspended, and answers other peers itself. Messages to them wait in the channels.
type Pause struct {
	Rule string        // rule that has fired, as people read it; empty: the owner does not need the machine
	Most time.Duration // how long processes may be suspended; 0: they end at once
}

// canSuspend reports whether this system lets a peer see all processes of a job, and thus suspend them. On
// other systems they run until they end.
const canSuspend = runtime.GOOS == "linux"

const (
	// migrateTimeout is the time that a job that can migrate has for that before it is suspended. It is also
	// the minimum time before such a job ends.
	migrateTimeout = 10 * time.Second
	// updateTimeout bounds the total time in which processes keep running to bring their replacements up to
	// date. Only the submitter states which process replaces which.
	updateTimeout = 5 * time.Minute
)

// Pause sets what jobs of other submitters do from now on, including jobs that come later.
func (s *Service) Pause(p Pause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = p
}

func (s *Service) pause() Pause {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}
