package launch

import (
	"fmt"
	"runtime"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Pause is what the owner has said for while he needs the machine. Jobs that do not run yet end here, since they
// can begin elsewhere; those with replicas are handed over meanwhile (HandOver); the processes of all others, and of
// those that cannot be migrated soon, stand still, and end if it takes too long. Nothing is fetched, nor passed on
// to others. His own jobs go on.
//
//	owner --> Pause(rule) --> guard: all stand --> Paused(rule) --> submitter
//	                             |-- Pause() ----> they go on ----> Paused() --'
//	                             '-- Most later -> they end ------> Exited(why)
//
// Nobody takes them for hung: whoever asks them for a sign of life is this peer, which knows, and this peer
// answers others for itself. What others send them waits where it is.
type Pause struct {
	Rule string        // that has fired, as people read it; empty: he does not need it
	Most time.Duration // that processes stand still; 0: they end at once
}

// canStand is whether this system lets a peer see who runs, and so stop them all. On others they go on until
// they end.
const canStand = runtime.GOOS == "linux"

const (
	// moveTimeout is how long a job that may go on elsewhere has for that before it stands still, and before it
	// ends at the least.
	moveTimeout = 10 * time.Second
	// updateTimeout is how long the owner bears in all that processes go on to bring those up to date that come
	// in their place. Who comes in whose place is the submitter's word.
	updateTimeout = 5 * time.Minute
)

// Pause says what jobs of others are to do from now on, those included that come later.
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

// heed does what the owner has said.
func (j *job) heed() {
	p := j.service.pause()
	if j.submitter == j.service.host.ID() {
		return
	}
	if needs := p.Rule != ""; needs == j.pausedAt.IsZero() {
		j.pauseFrom(needs)
	}
	if p.Rule != "" {
		j.spare(p)
	}
	j.stands.Store(j.mustStand())
	j.sayPaused(p)
}

// pauseFrom notes that from now on the owner needs the machine, or does not any more.
func (j *job) pauseFrom(needs bool) {
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.pausedAt = time.Time{}
	if needs {
		j.pausedAt = time.Now()
	}
}

// spare ends what the job does here for others, and the job where it is not to wait any longer.
func (j *job) spare(p Pause) {
	j.unshare()
	most := p.Most
	if j.service.movable(j) {
		most = max(most, moveTimeout)
	}
	ends := false
	switch j.state {
	case Staging, Staged:
		ends = true
	case Starting:
		ends = time.Since(j.pausedAt) >= most
	case Running:
		ends = time.Since(j.pausedAt) >= most && len(j.instances()) > 0 // else nothing of it runs here
	}
	if ends {
		j.cutShort(fmt.Errorf("its owner needs the machine: %s", p.Rule))
	}
}

// mustStand reports whether the processes are to stand still now. What cannot be migrated stands from the
// beginning, as soon as the guard has seen it.
func (j *job) mustStand() bool {
	switch {
	case !canStand || j.pausedAt.IsZero():
		return false
	case !j.service.movable(j):
		return true
	}
	since := time.Since(j.pausedAt)
	return since >= moveTimeout && (since >= updateTimeout || !j.succeeded())
}

// succeeded reports whether a process has come to take the place of one here, which may have to bring it up to date.
func (j *job) succeeded() bool {
	for p := range j.members.peerOf {
		if state := j.view.State(p); p.Replica < j.spec.R || j.local[p] != nil || state == view.Failed || state == view.Finished {
			continue
		}
		for id, here := range j.local {
			if id.Rank == p.Rank && !here.expelled {
				return true
			}
		}
	}
	return false
}

// sayPaused tells the submitter, once the processes run, that they stand still, or go on.
func (j *job) sayPaused(p Pause) {
	stands := j.stands.Load()
	if j.state != Running || stands == j.saidStand {
		return
	}
	j.saidStand = stands
	j.log.Info().Str("rule", p.Rule).Bool("stands", stands).Msg("pause of a job")
	if !stands {
		p = Pause{}
	}
	j.say(paused(p))
}

// standRound is how often processes that are to stand are told so again.
const standRound = time.Second

// standBy has all processes stand still until the job is to go on. What calls that are under way still write
// is measured; once all stand, nobody writes any more.
func (g *guard) standBy() {
	g.halt()
	defer g.letGoOn()
	settled := false
	for round := 0; g.job.stands.Load(); round++ {
		begun := time.Now()
		if g.spend(); g.room <= 0 && !settled {
			left, ok := g.measureStill()
			if !ok {
				return
			}
			g.room = left
		}
		settled = g.round()
		g.watch(false)
		if !settled {
			if !g.pauseAfter(round, time.Since(begun), g.room) {
				return
			}
			continue
		}
		select {
		case <-time.After(standRound):
		case <-g.job.ctx.Done():
			return
		}
	}
}
