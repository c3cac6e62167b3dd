package launch

import (
	"fmt"
	"runtime"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

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

// applyPause applies the owner's current Pause to the job.
func (j *job) applyPause() {
	p := j.service.pause()
	if j.submitter == j.service.host.ID() {
		return
	}
	if needs := p.Rule != ""; needs == j.pausedAt.IsZero() {
		j.pauseFrom(needs)
	}
	if p.Rule != "" {
		j.suspendServices(p)
	}
	j.suspended.Store(j.mustSuspend())
	j.reportSuspension(p)
}

// pauseFrom records whether the owner needs the machine from now on.
func (j *job) pauseFrom(needs bool) {
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.pausedAt = time.Time{}
	if needs {
		j.pausedAt = time.Now()
	}
}

// suspendServices stops serving files to other peers, and ends the job here if its time is over.
func (j *job) suspendServices(p Pause) {
	j.stager.unshare()
	most := p.Most
	if j.service.canMigrate(j) {
		most = max(most, migrateTimeout)
	}
	ends := false
	switch j.state {
	case Staging, Staged:
		ends = true
	case Starting:
		ends = time.Since(j.pausedAt) >= most
	case Running:
		ends = time.Since(j.pausedAt) >= most && len(j.instances()) > 0 // otherwise nothing of the job runs here
	}
	if ends {
		j.cutShort(fmt.Errorf("its owner needs the machine: %s", p.Rule))
	}
}

// mustSuspend reports whether the processes must be suspended now. A job that cannot migrate is suspended
// from the beginning.
func (j *job) mustSuspend() bool {
	switch {
	case !canSuspend || j.pausedAt.IsZero():
		return false
	case !j.service.canMigrate(j):
		return true
	}
	since := time.Since(j.pausedAt)
	return since >= migrateTimeout && (since >= updateTimeout || !j.hasReplacement())
}

// hasReplacement reports whether a replacement of a process here has joined, which that process may have to
// bring up to date.
func (j *job) hasReplacement() bool {
	for p := range j.members.PeerOf {
		if state := j.view.State(p); p.Replica < j.spec.R || j.local[p] != nil || state == view.Failed || state == view.Finished {
			continue
		}
		if _, here := j.ofRank(p.Rank); here {
			return true
		}
	}
	return false
}

// reportSuspension tells the submitter, once the processes run, that they are suspended or resumed.
func (j *job) reportSuspension(p Pause) {
	suspended := j.suspended.Load()
	if j.state != Running || suspended == j.suspensionReported {
		return
	}
	j.suspensionReported = suspended
	j.log.Info().Str("rule", p.Rule).Bool("suspended", suspended).Msg("job suspended or resumed")
	if !suspended {
		p = Pause{}
	}
	j.send(paused(p))
}

// suspendedRound is the interval at which suspended processes are stopped again.
const suspendedRound = time.Second

// keepSuspended keeps all processes suspended until the job resumes. It measures what system calls in
// progress still write; once all processes have stopped, nothing is written any more.
func (g *guard) keepSuspended() {
	g.halt()
	defer g.resume()
	settled := false
	for round := 0; g.job.suspended.Load(); round++ {
		begun := time.Now()
		if g.spend(); g.room <= 0 && !settled {
			left, ok := g.measureStopped()
			if !ok {
				return
			}
			g.room = left
		}
		settled = g.round()
		g.measureDue(false)
		if !settled {
			if !g.pauseAfter(round, time.Since(begun), g.room) {
				return
			}
			continue
		}
		select {
		case <-time.After(suspendedRound):
		case <-g.job.ctx.Done():
			return
		}
	}
}
