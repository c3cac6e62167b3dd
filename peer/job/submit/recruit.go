package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

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
// So no other process buffers messages for it before it waits in mpj.Init. The submitter of a
// resumed job is not in the view group. It sends Agree first, and Introduce in place of Joined; the
// peers get views and membership rows from each other.
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

// healPeriod is how often a job checks whether to replace a lost replica.
const healPeriod = 250 * time.Millisecond

// heal replaces lost replicas, one rank after the other.
func (e *execution) heal() {
	if e.healing == nil || e.partitioned || e.resumption != nil && !(e.resumption.caughtUp && e.peers.numbersKnown()) {
		return
	}
	now := e.elapsed()
	for rank := range e.j.req.N {
		if e.healing.Observe(rank, e.state.Lacks(rank), now) {
			e.j.emit(Event{Kind: HealEvent, Rank: rank, Text: fmt.Sprintf("rank %d lacks a replica; looking for another peer", rank)})
		}
	}
	e.releaseUnneeded()
	for rank := range e.j.req.N {
		switch served, serving := e.healing.Served(rank), e.recruiting(rank); {
		case served && !serving: // it failed after it had joined
			e.healing.GaveUp(rank, now)
		case serving && !served: // the previous process let it join
			e.healing.Serve(rank)
		}
	}
	if rank, ok := e.healing.Next(now); ok && e.search == nil {
		e.startSearch(rank)
	}
}

// recruiting reports whether a search for a replica of rank runs, or a new replica has yet to catch
// up.
func (e *execution) recruiting(rank int) bool {
	return e.search != nil && e.searched == rank || e.state.Lags(rank) || e.state.JoinPending(rank) ||
		slices.ContainsFunc(e.peers.links, func(l *link) bool {
			return l.err == nil && !l.retired && (l.recruit != nil && l.recruit.process.Rank == rank || l.adds(rank))
		})
}

// releaseUnneeded releases recruits of ranks that lack no replica, silent recruits, and peers whose
// processes have all failed. The peers can be recruited again.
func (e *execution) releaseUnneeded() {
	for _, l := range e.peers.links {
		e.dropUnneededAdditions(l)
		switch r := l.recruit; {
		case l.err != nil || r != nil && r.phase == recruitJoining:
		case l.retired:
			if time.Since(l.retiredAt) > retireFor {
				l.lose(fmt.Errorf("no confirmation for %v that it has stopped", retireFor))
			}
		case len(l.added) > 0:
		case r == nil && e.resumption != nil: // they end by themselves once their votes are not needed
		case r == nil:
			if !slices.ContainsFunc(l.processes, e.state.View().Has) && e.views.mayEndPart(l) {
				e.retire(l, "all its processes have failed")
			}
		case !e.state.Lacks(r.process.Rank):
			e.giveUp(l, errors.New("it is not needed any more"))
		case r.phase != recruitEntering && time.Since(r.heard) > e.replaceAfter():
			e.giveUp(l, fmt.Errorf("no message for %v", e.replaceAfter()))
		}
	}
}

// elapsed returns how long the job has been running.
func (e *execution) elapsed() time.Duration { return time.Since(e.j.status.Since) }

// retireFor is how long a peer may take to confirm that it has removed its part of the job. After
// that the submitter closes the stream.
const retireFor = 5 * time.Second

// retire ends the job's part at a peer. The job continues elsewhere.
func (e *execution) retire(l *link, why string) {
	e.detach(l)
	l.send(stopMessage(why))
	l.retired, l.retiredAt = true, time.Now()
}

// giveUp releases a recruit that has not joined; the search for another one follows.
func (e *execution) giveUp(l *link, err error) {
	r := l.recruit
	e.j.log.Info().Stringer("peer", l.peer).Int("rank", r.process.Rank).Err(err).Msg("recruit given up")
	e.healing.GaveUp(r.process.Rank, e.elapsed())
	e.avoid(l.peer)
	e.retire(l, err.Error())
}

func (e *execution) avoid(p p2ppeer.ID) { e.avoided.Failed(p, time.Now()) }

// handleRetired handles the last messages of a part that was retired.
func (e *execution) handleRetired(h received) {
	if h.err == nil {
		if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); !ok {
			return
		}
		h.link.stopped = true
		h.err = errRetired
	}
	h.link.lose(h.err)
	e.heal() // the peer may be recruited again
}

var errRetired = errors.New("its part of the job has ended")

// handleRecruit handles a message about a recruit, or the end of its stream.
func (e *execution) handleRecruit(h received) *job.Result {
	l, m := h.link, h.msg
	r := l.recruit
	if h.err == nil && m.GetSuspect() != nil { // it may be about the submitter's peer, which has reconnected
		return nil
	}
	if e.resumption != nil && r.phase == recruitJoining && m.GetAgreed() != nil { // the view group sends it all views
		if err := l.reports.add(m.GetAgreed()); err != nil {
			l.lose(err)
		}
		return nil
	}
	if r.phase == recruitJoining { // joined handles the loss once the process is in the view
		l.lose(cmp.Or(h.err, errEarly))
		e.avoid(l.peer) // so that it is not recruited again before the peers learn of the loss
		return nil
	}
	if h.err != nil {
		l.lose(h.err)
		e.giveUp(l, h.err)
		return nil
	}
	r.heard = time.Now()
	return e.advance(l, m)
}

// advance moves a recruit from phase to phase, according to the messages of its peer.
func (e *execution) advance(l *link, m *jobpb.FromPeer) *job.Result {
	phase := l.recruit.phase
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Staging:
		return nil
	case *jobpb.FromPeer_Prepared:
		if phase == recruitStaging {
			e.preparedRecruit(l, b.Prepared)
			return nil
		}
	case *jobpb.FromPeer_Started:
		if phase == recruitStarting {
			e.startedRecruit(l, b.Started)
			return nil
		}
	case *jobpb.FromPeer_Initialized:
		if phase == recruitEntering && b.Initialized.GetProcess().View() == l.recruit.process && len(b.Initialized.Key) == proclink.KeySize {
			return e.enter(l, l.recruit, b.Initialized.Key)
		}
	case *jobpb.FromPeer_Exited:
		e.giveUp(l, errors.New(plain("its process "+exitOf(b.Exited, l.peer).String())))
		return nil
	case *jobpb.FromPeer_Aborted:
		e.giveUp(l, errors.New("its process called Abort"))
		return nil
	}
	e.giveUp(l, unexpected(m))
	return nil
}

// preparedRecruit handles the answer of a recruit's peer to Prepare: it has all files, or an error.
func (e *execution) preparedRecruit(l *link, m *jobpb.Prepared) {
	if m.Error != "" {
		e.giveUp(l, errors.New(plain(m.Error)))
		return
	}
	l.redeemed = true
	l.machine = string(m.Machine[:min(len(m.Machine), maxMachine)])
	l.recruit.phase = recruitStarting
	e.startRecruit(l)
}

// startedRecruit handles the answer of a recruit's peer to Start: the process runs, or an error.
func (e *execution) startedRecruit(l *link, m *jobpb.Started) {
	if m.Error != "" {
		e.giveUp(l, errors.New(plain(m.Error)))
		return
	}
	l.recruit.phase = recruitEntering
	if err := e.detection.watch(l); err != nil {
		e.giveUp(l, err)
	}
}

var errEarly = errors.New("protocol violation: message before its process had joined")

// startRecruit sends the recruit's peer the current membership table. From then on the peer also
// gets the messages to all peers.
func (e *execution) startRecruit(l *link) {
	r := l.recruit
	v := e.state.View()
	m := e.startMessage(v)
	for p, on := range e.peers.runsOn {
		if v.Has(p) || e.peers.entered(p, e.state.View()) {
			m.Members = append(m.Members, e.peers.row(on, p))
		}
	}
	m.Members = append(m.Members, e.peers.row(l, r.process))
	l.send(e.outputs.emitted(r.process.Rank)) // the peer must not send output that the user has
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}})
}

// enter requests the view in which a recruit joins its rank. The recruit waits in mpj.Init and has
// a key. Before that, enter tells all peers where the process runs.
func (e *execution) enter(l *link, r *recruit, key []byte) *job.Result {
	p := r.process
	s := e.state.Join(p)
	if s.Propose == nil {
		e.dropAddition(l, r, fmt.Errorf("process %v can no longer join the view", p))
		return nil
	}
	r.phase = recruitJoining
	undo := e.views.registerRecruit(l, p, key)
	err := e.j.keeper.writePeers(e)
	if err != nil && e.resumption != nil { // a later process would give its number to another peer
		r.phase = recruitEntering
		undo()
		e.state.WithdrawJoin(p.Rank)
		e.dropAddition(l, r, err)
		return nil
	}
	if err != nil {
		e.j.warn(fmt.Sprintf("if this p2prun is killed, p2prun --attach will not show the output of rank %d replica %d: %v", p.Rank, p.Replica, err))
	}
	e.peers.runsOn[p] = l
	if e.resumption != nil {
		if l.recruit != nil {
			l.send(e.views.agreeMessage())
		}
		return e.requestJoin(l, p, s)
	}
	e.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: e.peers.row(l, p)}})
	e.views.introduce(l, p)
	return e.apply(s)
}

// joined lets a process that is now in the view leave mpj.Init, unless it was lost meanwhile.
func (e *execution) joined(p view.Process) *job.Result {
	l := e.peers.runsOn[p]
	if l == nil { // another submitter with the same key let it join
		e.j.warn(fmt.Sprintf("rank %d replica %d has joined on an unknown peer", p.Rank, p.Replica))
		return nil
	}
	l.recruit = nil
	delete(l.added, p)
	if errors.Is(l.err, errUnknown) {
		e.j.warn(fmt.Sprintf("rank %d replica %d joined after the start of the job, on a peer that could not be recorded: its output is not shown, and lost replicas are not replaced", p.Rank, p.Replica))
		return nil
	}
	if l.err != nil {
		return e.lose(l, "it was lost while it joined", l.err)
	}
	l.send(e.outputs.emitted(p.Rank))
	if e.begin != nil {
		l.send(e.begin)
		e.probeAddresses(l)
	}
	return e.handleQueued(p)
}

// healed handles the report that a new process has caught up with the others of its rank.
func (e *execution) healed(p view.Process, m *jobpb.Healed) *job.Result {
	s := e.state.Healed(p)
	if !s.Healed {
		return nil
	}
	if e.healing == nil || !e.healing.Served(p.Rank) { // the previous process recruited it and told the user
		return e.apply(s)
	}
	took := e.healing.Healed(p.Rank, e.elapsed())
	delete(e.lacking, p.Rank)
	e.recoveries = append(e.recoveries, took)
	v := e.state.View()
	e.j.emit(Event{
		Kind: HealEvent, Rank: p.Rank, Took: took,
		Placed: []Placed{{Process: p, Peer: e.peers.runsOn[p].peer.String()}},
		Text: fmt.Sprintf("rank %d has %s again (replica %d on peer %s) after %.1f s: %s given anew",
			p.Rank, plural(uint64(len(v.LiveReplicas(p.Rank))), "replica"), p.Replica, short(e.peers.runsOn[p].peer), took.Seconds(),
			plural(m.Messages, "message")),
	})
	r := e.apply(s)
	e.heal() // ends the outage: the next loss in this rank is a new one
	return r
}

// plural returns a number with its noun, which is in the plural unless n is 1.
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// reportRecoveries tells the user how long ranks lacked a replica.
func (e *execution) reportRecoveries() {
	if len(e.recoveries) == 0 {
		return
	}
	var sum time.Duration
	for _, d := range e.recoveries {
		sum += d
	}
	longest := slices.Max(e.recoveries)
	e.j.emit(Event{Kind: HealEvent, Took: longest, Text: fmt.Sprintf("%s given to ranks that had lost one, %.1f s after the loss on average, %.1f s at most",
		plural(uint64(len(e.recoveries)), "new replica"), (sum / time.Duration(len(e.recoveries))).Seconds(), longest.Seconds())})
}
