package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A recruit is a process that is to join a rank and is not in the view yet.
//
//	submitter                               peer
//	    |-- Prepare(joining) ----------------->|  staging
//	    |<-- Prepared -------------------------|
//	    |-- Start(table, view), Emitted ------>|  starting
//	    |<-- Started --------------------------|
//	    |<-- Initialized(key) -----------------|  entering; it waits in mpj.Init
//	    |-- Joined ---------> all peers        |  joining, until the join is agreed on
//	    |-- Agree ---------------------------->|  it gets views from the view group
//	    |-- View -----------> all peers        |
//	    |-- Begin ---------------------------->|  in the view; asks another replica for what it lacks
//	    |<-- Healed ---------------------------|
//
// So no other process buffers messages for it before it waits in mpj.Init.
//
// See addition.go for a process on a peer that already takes part in the job.
type recruit struct {
	process view.Process
	phase   recruitPhase
	heard   time.Time             // time of the last message from its peer
	slots   reservation.Placement // its slot, if it is added beside other processes
}

type recruitPhase int

const (
	recruitStaging recruitPhase = iota
	recruitStarting
	recruitEntering
	recruitJoining
)

// A recruitment replaces lost replicas: it searches for peers that can run new ones, and brings these
// into the view.
type recruitment struct {
	j         *run
	state     *job.State
	peers     *membership
	outputs   *outputs
	detection *detectorGroup
	views     *viewGroup
	apply     func(job.Effects) *job.Result // applies the effects of an event

	healing    *job.Healing       // nil: lost replicas are not replaced
	search     context.CancelFunc // cancels the running search for a peer; nil: none runs
	searched   int                // rank that the search is for
	found      chan finding       // result of the search
	avoided    avoidance
	unused     map[p2ppeer.ID]reservation.Placement // slots of processes not added; perhaps not redeemed by their peers
	lacking    map[int][]string                     // by rank: reasons for a missing replica that the user knows
	recoveries []time.Duration                      // durations for which ranks lacked a replica
}

// healingOf returns the healing of a job that starts, or nil if lost replicas are not replaced.
func healingOf(req Request) *job.Healing {
	if !req.heals() {
		return nil
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return job.NewHealing(req.N, func(failed int) time.Duration { return reservation.Backoff(failed, random) })
}

// healPeriod is how often a job checks whether to replace a lost replica.
const healPeriod = 250 * time.Millisecond

// heal replaces lost replicas, one rank after the other.
func (c *recruitment) heal() {
	if c.healing == nil {
		return
	}
	now := c.j.elapsed()
	for rank := range c.j.req.N {
		if c.healing.Observe(rank, c.state.Lacks(rank), now) {
			c.j.emit(Event{Kind: HealEvent, Rank: rank, Text: fmt.Sprintf("rank %d lacks a replica; looking for another peer", rank)})
		}
	}
	c.releaseUnneeded()
	for rank := range c.j.req.N {
		switch served, serving := c.healing.Served(rank), c.recruiting(rank); {
		case served && !serving: // it failed after it had joined
			c.healing.GaveUp(rank, now)
		case serving && !served: // the previous process let it join
			c.healing.Serve(rank)
		}
	}
	if rank, ok := c.healing.Next(now); ok && c.search == nil {
		c.startSearch(rank)
	}
}

// recruiting reports whether a search for a replica of rank runs, or a new replica has yet to catch
// up.
func (c *recruitment) recruiting(rank int) bool {
	return c.search != nil && c.searched == rank || c.state.Lags(rank) || c.state.JoinPending(rank) ||
		slices.ContainsFunc(c.peers.links, func(l *link) bool {
			return l.err == nil && !l.retired && (l.recruit != nil && l.recruit.process.Rank == rank || l.adds(rank))
		})
}

// releaseUnneeded releases recruits of ranks that lack no replica, silent recruits, and peers whose
// processes have all failed. The peers can be recruited again.
func (c *recruitment) releaseUnneeded() {
	for _, l := range c.peers.links {
		c.dropUnneededAdditions(l)
		switch r := l.recruit; {
		case l.err != nil || r != nil && r.phase == recruitJoining:
		case l.retired:
			if time.Since(l.retiredAt) > retireFor {
				l.lose(fmt.Errorf("no confirmation for %v that it has stopped", retireFor))
			}
		case len(l.added) > 0:
		case r == nil:
			if l.allFailed(c.state.View()) && c.views.mayEndPart(l) {
				c.retire(l, "all its processes have failed")
			}
		case !c.state.Lacks(r.process.Rank):
			c.giveUp(l, errors.New("it is no longer needed"))
		case r.phase != recruitEntering && time.Since(r.heard) > c.j.replaceAfter():
			c.giveUp(l, fmt.Errorf("no message for %v", c.j.replaceAfter()))
		}
	}
}

// retireFor is how long a peer may take to confirm that it has removed its part of the job. After
// that the submitter closes the stream.
const retireFor = 5 * time.Second

// retire ends the job's part at a peer. The job continues elsewhere.
func (c *recruitment) retire(l *link, why string) {
	c.detection.remove(l)
	c.views.remove(l)
	l.send(stopMessage(why))
	l.retired, l.retiredAt = true, time.Now()
}

// giveUp releases a recruit that has not joined; the search for another one follows.
func (c *recruitment) giveUp(l *link, err error) {
	r := l.recruit
	c.j.log.Info().Stringer("peer", l.peer).Int("rank", r.process.Rank).Err(err).Msg("recruit given up")
	c.healing.GaveUp(r.process.Rank, c.j.elapsed())
	c.avoid(l.peer)
	c.retire(l, err.Error())
}

func (c *recruitment) avoid(p p2ppeer.ID) { c.avoided.Failed(p, time.Now()) }

// handleRetired handles the last messages of a part that was retired.
func (c *recruitment) handleRetired(h received) {
	if h.err == nil {
		if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); !ok {
			return
		}
		h.link.stopped = true
		h.err = errRetired
	}
	h.link.lose(h.err) // the peer may be recruited again
}

var errRetired = errors.New("its part of the job has ended")

// handleRecruit handles a message about a recruit, or the end of its stream.
func (c *recruitment) handleRecruit(h received) *job.Result {
	l, m := h.link, h.msg
	r := l.recruit
	if h.err == nil && m.GetSuspect() != nil { // it may be about the submitter's peer, which has reconnected
		return nil
	}
	if r.phase == recruitJoining { // joined handles the loss once the process is in the view
		l.lose(cmp.Or(h.err, errEarly))
		c.avoid(l.peer) // so that it is not recruited again before the peers learn of the loss
		return nil
	}
	if h.err != nil {
		l.lose(h.err)
		c.giveUp(l, h.err)
		return nil
	}
	r.heard = time.Now()
	return c.advance(l, r, m)
}

// advance moves a recruit from phase to phase, according to the messages of its peer.
func (c *recruitment) advance(l *link, r *recruit, m *jobpb.FromPeer) *job.Result {
	switch prepared, started := m.GetPrepared(), m.GetStarted(); {
	case m.GetStaging() != nil:
	case prepared.GetError() != "" || started.GetError() != "":
		c.giveUp(l, errors.New(plain(prepared.GetError()+started.GetError())))
	case prepared != nil && r.phase == recruitStaging:
		l.redeemed, l.reported.machine = true, string(prepared.Machine[:min(len(prepared.Machine), maxMachine)])
		r.phase = recruitStarting
		c.startRecruit(l)
	case started != nil && r.phase == recruitStarting:
		r.phase = recruitEntering
		if err := c.detection.watch(l); err != nil {
			c.giveUp(l, err)
		}
	default:
		return c.advanceProcess(l, r, m)
	}
	return nil
}

// advanceProcess handles a message about a process that runs and is to join.
func (c *recruitment) advanceProcess(l *link, r *recruit, m *jobpb.FromPeer) *job.Result {
	why := unexpected(m)
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		if r.phase == recruitEntering && b.Initialized.GetProcess().View() == r.process && len(b.Initialized.Key) == proclink.KeySize {
			return c.enter(l, r, b.Initialized.Key)
		}
	case *jobpb.FromPeer_Exited:
		why = errors.New(plain("its process " + exitOf(b.Exited, l.peer).String()))
	case *jobpb.FromPeer_Aborted:
		why = errors.New("its process called Abort")
	case *jobpb.FromPeer_Leaving:
		why = errors.New("its owner needs the machine")
	}
	c.dropAddition(l, r, why)
	return nil
}

var errEarly = errors.New("protocol violation: message before its process had joined")

// startRecruit sends the recruit's peer the current membership table. From then on the peer also
// gets the messages to all peers.
func (c *recruitment) startRecruit(l *link) {
	r := l.recruit
	v := c.state.View()
	m := c.j.startMessage(v)
	for p, on := range c.peers.runsOn {
		if v.Has(p) || c.peers.entered(p, c.state.View()) {
			m.Members = append(m.Members, c.peers.row(on, p))
		}
	}
	m.Members = append(m.Members, c.peers.row(l, r.process))
	l.send(c.outputs.emitted(r.process.Rank)) // the peer must not send output that the user has
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}})
}

// enter requests the view in which a recruit joins its rank. The recruit waits in mpj.Init and has
// a key. Before that, enter records the recruit and tells all peers where the process runs.
func (c *recruitment) enter(l *link, r *recruit, key []byte) *job.Result {
	p := r.process
	s := c.state.Apply(job.Recruited{Process: p})
	if s.Propose == nil {
		c.dropAddition(l, r, fmt.Errorf("process %v can no longer join the view", p))
		return nil
	}
	r.phase = recruitJoining
	undo := c.views.registerRecruit(l, p, key)
	if err := c.j.keeper.writePeers(c.peers); err != nil && !c.j.outdateRecord(err) { // a later process would give the number to another peer
		r.phase = recruitEntering
		undo()
		c.state.Apply(job.JoinWithdrawn{Rank: p.Rank})
		c.tellLacking(p.Rank, fmt.Sprintf("a new replica cannot be recorded: %v", err))
		c.dropAddition(l, r, err)
		return nil
	}
	c.peers.runsOn[p] = l
	return c.requestJoin(l, p, s)
}

// healed handles the report that a new process has caught up with the others of its rank. ended is true if the
// report ends an outage of the rank.
func (c *recruitment) healed(p view.Process, m *jobpb.Healed) (r *job.Result, ended bool) {
	s := c.state.Apply(job.Healed{Process: p})
	if !s.Healed {
		return nil, false
	}
	if c.healing == nil || !c.healing.Served(p.Rank) { // the previous process recruited it and told the user
		return c.apply(s), false
	}
	took := c.healing.Healed(p.Rank, c.j.elapsed())
	delete(c.lacking, p.Rank)
	c.recoveries = append(c.recoveries, took)
	v := c.state.View()
	c.j.emit(Event{
		Kind: HealEvent, Rank: p.Rank, Took: took,
		Placed: []Placed{{Process: p, Peer: c.peers.runsOn[p].peer.String()}},
		Text: fmt.Sprintf("rank %d has %s again (replica %d on peer %s) after %.1f s: %d %s replayed",
			p.Rank, english.Plural(len(v.LiveReplicas(p.Rank)), "replica", ""), p.Replica, short(c.peers.runsOn[p].peer), took.Seconds(),
			m.Messages, english.PluralWord(int(min(m.Messages, 2)), "message", "")),
	})
	return c.apply(s), true
}

// reportRecoveries tells the user how long ranks lacked a replica.
func (c *recruitment) reportRecoveries() {
	if len(c.recoveries) == 0 {
		return
	}
	var sum time.Duration
	for _, d := range c.recoveries {
		sum += d
	}
	longest := slices.Max(c.recoveries)
	c.j.emit(Event{Kind: HealEvent, Took: longest, Text: fmt.Sprintf("%s given to ranks that had lost one, %.1f s after the loss on average, %.1f s at most",
		english.Plural(len(c.recoveries), "new replica", ""), (sum / time.Duration(len(c.recoveries))).Seconds(), longest.Seconds())})
}

// requestJoin tells all peers where process p runs, and requests that it join the view by the change
// in s.
func (c *recruitment) requestJoin(l *link, p view.Process, s job.Effects) *job.Result {
	c.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: c.peers.row(l, p)}})
	c.views.introduce(l, p)
	return c.apply(s)
}
