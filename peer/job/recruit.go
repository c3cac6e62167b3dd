package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A recruit is a process that is to join a rank, while it is not in the view.
//
//	submitter                               peer
//	    |-- Prepare(joining) ----------------->|  staging
//	    |<-- Prepared -------------------------|
//	    |-- Start(table, view), Emitted ------>|  starting
//	    |<-- Started --------------------------|
//	    |<-- Initialized(key) -----------------|  entering; it waits in mpj.Init
//	    |-- Joined ---------> all peers        |  joining, until it is agreed that it is in the view
//	    |-- Agree ---------------------------->|  it has views from those who agree on them
//	    |-- View -----------> all peers        |
//	    |-- Begin ---------------------------->|  in the view; asks another replica for what it lacks
//	    |<-- Healed ---------------------------|
//
// So nobody keeps anything for a process before it is there. A submitter that has no part in
// agreeing on views says Agree first, and Introduce in place of Joined; others have views and rows
// from each other.
//
// addition.go describes how a peer that takes part in the job already gets the process.
type recruit struct {
	process view.Process
	phase   recruitPhase
	heard   time.Time             // when its peer was last heard
	slots   reservation.Placement // its slot, if it is added to a part that runs
}

type recruitPhase int

const (
	recruitStaging recruitPhase = iota
	recruitStarting
	recruitEntering
	recruitJoining
)

// healPeriod is how often a job looks whether a rank may get another replica.
const healPeriod = 250 * time.Millisecond

// heal has ranks that lack a replica get one, one after the other.
func (e *execution) heal() {
	if e.healing == nil || e.parted || e.adopted != nil && !(e.adopted.caughtUp && e.numbered()) {
		return
	}
	now := e.elapsed()
	for rank := range e.j.req.N {
		if e.healing.Observe(rank, e.watch.Lacks(rank), now) {
			e.j.emit(Event{Kind: HealEvent, Rank: rank, Text: fmt.Sprintf("rank %d lacks a replica; looking for another peer", rank)})
		}
	}
	e.dismiss()
	for rank := range e.j.req.N {
		switch served, serving := e.healing.Served(rank), e.serving(rank); {
		case served && !serving: // it failed after it had joined
			e.healing.GaveUp(rank, now)
		case serving && !served: // another process has let it join
			e.healing.Serve(rank)
		}
	}
	if rank, ok := e.healing.Next(now); ok && e.search == nil {
		e.seek(rank)
	}
}

// serving reports whether somebody is on the way to being a replica of rank.
func (e *execution) serving(rank int) bool {
	return e.search != nil && e.searched == rank || e.watch.Lags(rank) || e.watch.Expects(rank) ||
		slices.ContainsFunc(e.links, func(l *link) bool {
			return l.err == nil && !l.retired && (l.recruit != nil && l.recruit.process.Rank == rank || l.adds(rank))
		})
}

// dismiss lets those go that are not needed any more: recruits of ranks that
// lack nothing, or that say nothing, and peers whose processes have all failed. They
// can be recruited anew.
func (e *execution) dismiss() {
	for _, l := range e.links {
		e.dismissAdditions(l)
		switch r := l.recruit; {
		case l.err != nil || r != nil && r.phase == recruitJoining:
		case l.retired:
			if time.Since(l.retiredAt) > retireFor {
				l.lose(fmt.Errorf("no word for %v that it has stopped", retireFor))
			}
		case len(l.added) > 0:
		case r == nil && e.adopted != nil: // they end by themselves, when nobody waits for their votes
		case r == nil:
			if !slices.ContainsFunc(l.processes, e.watch.View().Has) && e.spared(l) {
				e.retire(l, "all its processes have failed")
			}
		case !e.watch.Lacks(r.process.Rank):
			e.giveUp(l, errors.New("it is not needed any more"))
		case r.phase != recruitEntering && time.Since(r.heard) > e.lull():
			e.giveUp(l, fmt.Errorf("no word for %v", e.lull()))
		}
	}
}

// spared reports whether the job's part at a peer can end without harm to those who
// agree on views, and asks them to let the peer go: several that left at once could take
// the majority with them. The submitter's own peer stays with them anyway.
func (e *execution) spared(l *link) bool {
	if e.views == nil || l.peer == e.j.s.cfg.Host.ID() || !e.views.Votes(l.peer) {
		return true
	}
	e.views.Gone(l.peer)
	return false
}

// elapsed is how long the job has been running.
func (e *execution) elapsed() time.Duration { return time.Since(e.j.status.Since) }

// retireFor is how long a peer has to say that nothing of the job is left there. After
// that it hears no more than that its stream has ended.
const retireFor = 5 * time.Second

// retire ends the job's part at a peer. The rest of the job goes on.
func (e *execution) retire(l *link, why string) {
	e.detach(l)
	l.say(stopMessage(why))
	l.retired, l.retiredAt = true, time.Now()
}

// giveUp lets go of a recruit that has not joined; another one will be looked for.
func (e *execution) giveUp(l *link, err error) {
	r := l.recruit
	e.j.log.Info().Stringer("peer", l.peer).Int("rank", r.process.Rank).Err(err).Msg("recruit given up")
	e.healing.GaveUp(r.process.Rank, e.elapsed())
	e.avoid(l.peer)
	e.retire(l, err.Error())
}

func (e *execution) avoid(p p2ppeer.ID) { e.avoided.Failed(p, time.Now()) }

// hearRetired takes the last words of a part that has been retired.
func (e *execution) hearRetired(h heard) {
	if h.err == nil {
		if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); !ok {
			return
		}
		h.link.stopped = true
		h.err = errRetired
	}
	h.link.lose(h.err)
	e.heal() // its peer may be needed
}

var errRetired = errors.New("its part of the job has ended")

// hearRecruit handles what is heard of a recruit.
func (e *execution) hearRecruit(h heard) *Result {
	l, m := h.link, h.msg
	r := l.recruit
	if h.err == nil && m.GetSuspect() != nil { // it may be of the submitter's peer, which is back
		return nil
	}
	if e.adopted != nil && r.phase == recruitJoining && m.GetAgreed() != nil { // it has all views from those who agree on them
		if err := l.testimony.add(m.GetAgreed()); err != nil {
			l.lose(err)
		}
		return nil
	}
	if r.phase == recruitJoining { // what is lost now is known when it has joined
		l.lose(cmp.Or(h.err, errEarly))
		e.avoid(l.peer) // so that it has not come again when it is said to be gone
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

// advance takes a recruit from phase to phase, by what its peer says.
func (e *execution) advance(l *link, m *jobpb.FromPeer) *Result {
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

// preparedRecruit goes on with a recruit whose peer has all files, or says why not.
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

// startedRecruit goes on with a recruit whose process runs, or whose peer says why it does not.
func (e *execution) startedRecruit(l *link, m *jobpb.Started) {
	if m.Error != "" {
		e.giveUp(l, errors.New(plain(m.Error)))
		return
	}
	l.recruit.phase = recruitEntering
	e.guard(l)
}

var errEarly = errors.New("it broke the protocol: it spoke before its process had joined")

// startRecruit gives the recruit's peer the membership table as it is now, and
// lets it hear of what follows.
func (e *execution) startRecruit(l *link) {
	r := l.recruit
	v := e.watch.View()
	m := e.startMessage(v)
	for p, on := range e.runsOn {
		if v.Has(p) || e.entered(p) {
			m.Members = append(m.Members, e.row(on, p))
		}
	}
	m.Members = append(m.Members, e.row(l, r.process))
	l.say(e.emitted(r.process.Rank)) // what the user has got is not to be sent again
	l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}})
}

// row is that of a process in the membership table.
func (e *execution) row(l *link, p view.Process) *jobpb.Member {
	return &jobpb.Member{
		Process: jobpb.FromProcess(p), Peer: []byte(l.peer), Addrs: e.addrs(l.peer),
		Machine: []byte(l.machine), Key: e.keyOf(l, p),
	}
}

// entered reports whether everybody has been told where p runs, which is yet to be in
// the view. Nobody takes the view that it is in without having heard that.
func (e *execution) entered(p view.Process) bool {
	return e.runsOn[p] != nil && e.watch.View().State(p) == view.Vacant
}

// keyOf returns the public key of a process on l; nil when it has not said it, or
// Begin brings it.
func (e *execution) keyOf(l *link, p view.Process) []byte {
	if p.Replica < e.j.req.R {
		return nil
	}
	return l.keys[p]
}

// enter requests the view in which a recruit, which waits in mpj.Init and has a key, joins its rank. Before
// that it tells all peers where the process runs.
func (e *execution) enter(l *link, r *recruit, key []byte) *Result {
	p := r.process
	s := e.watch.Join(p)
	if s.Propose == nil {
		e.letGo(l, r, fmt.Errorf("process %v cannot join the view any more", p))
		return nil
	}
	r.phase = recruitJoining
	undo := e.enlist(l, p, key)
	err := e.j.keeper.writePeers(e)
	if err != nil && e.adopted != nil { // the next process would give its number to another peer
		r.phase = recruitEntering
		undo()
		e.watch.Forgo(p.Rank)
		e.letGo(l, r, err)
		return nil
	}
	if err != nil {
		e.j.warn(fmt.Sprintf("should this p2prun be killed, what rank %d replica %d prints will not be seen by p2prun --attach: %v", p.Rank, p.Replica, err))
	}
	e.runsOn[p] = l
	if e.adopted != nil {
		if l.recruit != nil {
			l.say(e.agreeMessage())
		}
		return e.letIn(l, p, s)
	}
	e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: e.row(l, p)}})
	e.introduce(l, p)
	return e.apply(s)
}

// joined lets a process that is in the view now leave mpj.Init, unless it was lost
// meanwhile.
func (e *execution) joined(p view.Process) *Result {
	l := e.runsOn[p]
	if l == nil { // another submitter with this one's key has had it join
		e.j.warn(fmt.Sprintf("rank %d replica %d has joined on a peer that is not known here", p.Rank, p.Replica))
		return nil
	}
	l.recruit = nil
	delete(l.added, p)
	if errors.Is(l.err, errUnknown) {
		e.j.warn(fmt.Sprintf("rank %d replica %d came later than the job began, on a peer that is not known here, since that could not be kept: what it prints is not seen, and replicas that are lost are not replaced", p.Rank, p.Replica))
		return nil
	}
	if l.err != nil {
		return e.lose(l, "it was lost while it joined", l.err)
	}
	l.say(e.emitted(p.Rank))
	if e.begin != nil {
		l.say(e.begin)
		e.knock(l)
	}
	return e.hearPutOff(p)
}

// guard watches the peer of a recruit. The job's group is fixed until all watch each
// other anew, so the submitter and each later peer make one of their own until then.
func (e *execution) guard(l *link) {
	cfg := e.j.s.cfg
	if l.peer == cfg.Host.ID() {
		return
	}
	group, err := cfg.Detector.Join(faultdetect.GroupConfig{
		Job: jobpb.GroupOf(e.j.spec.ID, l.recruit.process), Members: []p2ppeer.ID{l.peer, cfg.Host.ID()}, Self: 1,
		Period: cfg.Period, Offset: firstHeartbeat, Hang: cfg.Hang, Mode: cfg.Mode,
		Verdict: func(v faultdetect.Verdict) {
			if v.Member == 0 {
				e.verdict(l, v)
			}
		},
	})
	if err != nil {
		e.giveUp(l, err)
		return
	}
	l.group = group
	l.say(e.joinMessage(l.peer, cfg.Host.ID()))
}

// healed takes the word of a process that it does what the others of its rank do.
func (e *execution) healed(p view.Process, m *jobpb.Healed) *Result {
	s := e.watch.Healed(p)
	if !s.Healed {
		return nil
	}
	if e.healing == nil || !e.healing.Served(p.Rank) { // another process has recruited it, and told the user
		return e.apply(s)
	}
	took := e.healing.Healed(p.Rank, e.elapsed())
	delete(e.lacking, p.Rank)
	e.recoveries = append(e.recoveries, took)
	v := e.watch.View()
	e.j.emit(Event{
		Kind: HealEvent, Rank: p.Rank, Took: took,
		Placed: []Placed{{Process: p, Peer: e.runsOn[p].peer.String()}},
		Text: fmt.Sprintf("rank %d has %s again (replica %d on peer %s) after %.1f s: %s given anew",
			p.Rank, many(uint64(len(v.LiveReplicas(p.Rank))), "replica"), p.Replica, short(e.runsOn[p].peer), took.Seconds(),
			many(m.Messages, "message")),
	})
	r := e.apply(s)
	e.heal() // the rank lacks nothing now: what it loses next is another loss
	return r
}

// many writes how many there are of something.
func many(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sumUp tells the user how long ranks were without a replica.
func (e *execution) sumUp() {
	if len(e.recoveries) == 0 {
		return
	}
	var sum time.Duration
	for _, d := range e.recoveries {
		sum += d
	}
	longest := slices.Max(e.recoveries)
	e.j.emit(Event{Kind: HealEvent, Took: longest, Text: fmt.Sprintf("%s given to ranks that had lost one, %.1f s after the loss on average, %.1f s at most",
		many(uint64(len(e.recoveries)), "new replica"), (sum / time.Duration(len(e.recoveries))).Seconds(), longest.Seconds())})
}
