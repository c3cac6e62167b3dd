package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// suspect makes the detector question a peer that another peer reports as failed. The report alone
// fails no peer. A report about the submitter's own peer means that it was cut off for a while.
func (e *execution) suspect(m *jobpb.Suspect) {
	switch id := p2ppeer.ID(m.GetPeer()); {
	case id != e.j.s.cfg.Host.ID():
		e.detection.question(id)
	case e.views.group != nil && !e.partition.active && e.detection.concerned(m.GetGeneration()):
		e.regroup()
	}
}

var (
	errSilent  = errors.New("no heartbeat from it")
	errOutside = errors.New("it has left the view group")
)

// handleVerdicts handles the detector's verdicts.
func (e *execution) handleVerdicts() (r *job.Result) {
	for _, l := range e.peers.links {
		if l.suspicion.failed.Swap(false) {
			r = cmp.Or(r, e.handleFailure(l))
		}
	}
	return r
}

// handleFailure handles the detector's verdict that a peer has failed. While the submitter's peer
// is out of touch with the majority, it may be the one that is cut off. If the majority is lost and the
// job continues without it, nothing is left to wait for.
func (e *execution) handleFailure(l *link) *job.Result {
	switch {
	case l.err != nil || l.retired:
		return nil
	case l.recruit != nil:
		return e.recruitment.handleRecruit(received{link: l, err: errSilent})
	case e.partition.active:
		return e.disconnect(l, nil)
	case e.views.inTouch() || e.views.cutOff() && !e.peersMayContinue():
		return e.loseSilentPeer(l)
	case e.partition.deferFailure(l):
		e.j.warn("no message from the job's peers: this machine may be cut off; waiting for the majority of them")
	}
	return nil
}

// loseSilentPeer gives up a silent peer.
func (e *execution) loseSilentPeer(l *link) *job.Result {
	if l.err != nil || l.retired { // retire has already removed a retired peer from the groups
		return nil
	}
	cs, _ := e.peers.contacts()
	r := e.lose(l, "it has been silent for too long", errSilent)
	if r != nil && r.Status == job.StatusLost && e.j.req.R == 1 && len(cs) > 0 {
		*r = outOfReach(cs)
	}
	return r
}

// protocolError gives up a peer that broke the protocol. err describes the violation; nil means that there is none.
func (e *execution) protocolError(l *link, err error) *job.Result {
	if err == nil {
		return nil
	}
	e.recruitment.avoided.Distrust(l.peer)
	return e.lose(l, "it violated the protocol", err)
}

// lose gives a peer up and requests that its processes fail; why is the rest of a sentence about
// the peer.
func (e *execution) lose(l *link, why string, err error) *job.Result {
	e.j.log.Info().Stringer("peer", l.peer).Err(err).Msg("peer lost")
	l.lose(err)
	e.detection.remove(l)
	e.views.remove(l)
	e.recruitment.avoid(l.peer)
	e.routing.tell()
	return e.apply(e.state.Apply(job.Lost{Processes: l.processes, Why: fmt.Sprintf("failed with its peer %s: %s", short(l.peer), why)}))
}

// regroup starts a new detector group of the peers that have a part in the job.
func (e *execution) regroup() {
	links := slices.DeleteFunc(slices.Clone(e.peers.links), func(l *link) bool {
		return l.err != nil || l.retired || l.recruit != nil
	})
	if err := e.detection.regroup(links); err != nil {
		e.j.log.Warn().Err(err).Msg("reconnected, but failure detection could not be restarted")
		return
	}
	if e.partition.takeSilent() != nil {
		e.j.warn("reconnected to the job's peers")
	}
}

// heal replaces lost replicas, unless it is unknown which are lost.
func (e *execution) heal() {
	if !e.partition.active && (!e.j.resumed || e.peers.numbersKnown()) {
		e.recruitment.heal()
	}
}

// awaitEntry fails the processes that are overdue in mpj.Init, and tells the user which processes
// the job waits for.
func (e *execution) awaitEntry() *job.Result {
	if e.begin != nil {
		e.entryTicks = nil
		return nil
	}
	now, v, least := time.Now(), e.state.View(), e.j.s.waits.silence
	e.entry.Look(now, slices.ContainsFunc(e.entry.Missing(v), e.peers.suspended))
	if missing := e.entry.ToTell(v, least, now); len(missing) > 0 {
		e.j.warn("the job waits for mpj.Init, which has not been called by " + e.peers.whereAll(missing))
	}
	if late := e.entry.Overdue(v, least, now); len(late) > 0 {
		return e.apply(e.state.Apply(job.Lost{Processes: late, Why: fmt.Sprintf("did not call mpj.Init long after most replicas of its rank had (%s)", e.peers.whereAll(late))}))
	}
	if missing, waiting, ok := e.entry.Undecided(v, least, now); ok && e.j.req.OnDivergence != Warn {
		return &job.Result{
			Status: job.StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: replica %d on peer %s called mpj.Init or ended long ago, and replica %d on peer %s has done neither",
				missing.Rank, waiting.Replica, e.peers.peerOf(waiting), missing.Replica, e.peers.peerOf(missing)),
			Hint: "one of these peers lies or is very slow: with -r 3 most replicas decide",
		}
	}
	return nil
}

// reviewSilence tells the user which peers a job without replicas waits for, and gives up a peer
// that has been silent for too long.
func (e *execution) reviewSilence() *job.Result {
	if !e.j.toleratesOutages() {
		return nil
	}
	cs, links := e.peers.contacts()
	o := judgeOutage(cs, time.Since(e.begun), e.warned)
	e.warned = o.warned
	if o.note != "" {
		e.j.warn(o.note)
	}
	if o.lost < 0 {
		return nil
	}
	return e.loseSilentPeer(links[o.lost])
}

// loseWithholding gives up the peers that withhold output of an output leader that has ended, so that
// another replica becomes output leader. A rank without another replica fails, so its peer gets
// more time.
func (e *execution) loseWithholding() *job.Result {
	most := func(p view.Process) time.Duration {
		if len(e.state.Counting(p.Rank)) > 1 {
			return e.j.s.waits.output
		}
		return e.j.s.waits.silence
	}
	var owing []view.Process
	for _, p := range e.state.Undrained() {
		if l := e.peers.runsOn[p]; l != nil && l.err == nil && !isDisconnected(l) && e.outputs.owes(p) {
			owing = append(owing, p)
		}
	}
	for _, p := range e.outputs.withheld.overdue(owing, most, time.Now()) {
		if l := e.peers.runsOn[p]; l.err == nil {
			if r := e.lose(l, "it withholds output", errWithheld); r != nil {
				return r
			}
		}
	}
	return nil
}
