package launch

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// applyPause applies the owner's current Pause to the job. While the owner needs the machine, the job serves no
// files to other peers, and ends here if its time is over.
func (j *job) applyPause() {
	p, now := j.service.pause(), time.Now()
	if j.submitter == j.service.host.ID() {
		return
	}
	if needs := p.Rule != ""; needs == j.reclaim.pausedAt.IsZero() {
		j.service.mu.Lock()
		j.reclaim.pausedAt = time.Time{}
		if needs {
			j.reclaim.pausedAt = now
		}
		j.service.mu.Unlock()
	}
	migrates := j.service.canMigrate(j)
	if p.Rule != "" {
		j.stager.unshare()
		most := p.Most
		if migrates {
			most = max(most, migrateTimeout)
		}
		if j.reclaim.endsPaused(j.state, most, len(j.here.instances()) > 0, now) {
			j.cutShort(fmt.Errorf("its owner needs the machine: %s", p.Rule))
		}
	}
	j.suspended.Store(j.reclaim.suspends(migrates, p.Rule != "" && j.hasReplacement(), now))
	j.reportSuspension(p)
}

// hasReplacement reports whether a replacement of a process here has joined, which that process may have to
// bring up to date.
func (j *job) hasReplacement() bool {
	for p := range j.members.PeerOf {
		if state := j.views.current.State(p); p.Replica < j.spec.R || j.here.local[p] != nil || state == view.Failed || state == view.Finished {
			continue
		}
		if _, here := j.here.ofRank(p.Rank); here {
			return true
		}
	}
	return false
}

// reportSuspension tells the submitter, once the processes run, that they are suspended or resumed.
func (j *job) reportSuspension(p Pause) {
	suspended := j.suspended.Load()
	if j.state != Running || suspended == j.reclaim.reported {
		return
	}
	j.reclaim.reported = suspended
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
