package launch

import (
	"fmt"
	"runtime"
	"time"
)

// A Pause is what the owner has said for while he needs the machine. Jobs with replicas are handed over
// meanwhile (HandOver); the processes of others stand still, and end if it takes too long. His own jobs go on.
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

// moveTimeout is how long a job may take, at the least, to be handed over.
const moveTimeout = 10 * time.Second

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
	switch {
	case p.Rule == "" && j.pausedAt.IsZero():
	case p.Rule == "":
		j.stand(time.Time{})
	case j.pausedAt.IsZero():
		j.stand(time.Now())
	}
	most := p.Most
	if j.service.movable(j) {
		most = max(most, moveTimeout)
	}
	needed := j.state != Running || len(j.instances()) > 0 // else nothing of it runs here
	if needed && !j.pausedAt.IsZero() && time.Since(j.pausedAt) >= most {
		j.cutShort(fmt.Errorf("its owner needs the machine: %s", p.Rule))
	}
	j.sayPaused(p)
}

// stand notes since when the owner needs the machine; zero: he does not any more. What cannot be handed over
// stands still then, or goes on, as soon as the guard has seen it.
func (j *job) stand(since time.Time) {
	j.service.mu.Lock()
	j.pausedAt = since
	j.service.mu.Unlock()
	j.stands.Store(canStand && !since.IsZero() && !j.service.movable(j))
}

// sayPaused tells the submitter, once the processes run, that they stand still, or go on.
func (j *job) sayPaused(p Pause) {
	stands := j.stands.Load()
	if j.state != Running || stands == j.saidStand {
		return
	}
	j.saidStand = stands
	j.log.Info().Str("rule", p.Rule).Bool("stands", stands).Msg("pause of a job")
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
