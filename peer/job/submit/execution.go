package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// execution is a job on its peers: the control streams, and the pure cores that decide how to react
// to the peers' messages. The goroutine of Submitter.Run owns it.
type execution struct {
	j            *run
	reserved     *reservation.Reservation
	state        *job.State
	outputs      *outputs
	peers        *membership
	routing      routing
	earlyReports earlyReports // divergence reports about receivers that have yet to join
	toJoin       backlogs     // messages about processes that have yet to join
	confirmation *confirmation
	collector    *collector
	recruitment  *recruitment
	detection    *detectorGroup
	partition    partition
	deadlines    deadlines
	views        *viewGroup
	replaced     bool          // another process has resumed the job
	begin        *jobpb.ToPeer // lets processes leave mpj.Init; nil until all have called it

	entry         *job.Entry       // nil: another process started the job
	entryTicks    <-chan time.Time // ticks until the job has begun
	healTicks     <-chan time.Time // ticks every healPeriod
	touchTicks    <-chan time.Time // ticks every touchPeriod; nil: the job is not kept
	pulseTicks    <-chan time.Time // ticks every pulsePeriod
	presenceTicks <-chan time.Time // ticks every presencePeriod during startWindow
	presence      presence
	begun         time.Time     // when all peers had started the job
	warned        bool          // the user knows which peers are out of reach, see outage.go
	lastUptime    time.Duration // uptime at the last check that this process runs
}

// newExecution returns the execution of a job on the peers of a reservation. The caller must call close.
func newExecution(j *run, reserved *reservation.Reservation) *execution {
	e := &execution{
		j: j, reserved: reserved,
		state:        job.NewState(j.req.N, j.req.R),
		peers:        newMembership(j),
		earlyReports: make(earlyReports),
		toJoin:       make(backlogs),
		detection:    &detectorGroup{j: j, failed: make(chan struct{}, 1)},
	}
	for _, p := range reserved.Placements {
		e.peers.add(newLink(p, p.Processes...))
	}
	e.views = &viewGroup{j: j, peers: e.peers, events: newAgreed()}
	e.routing = routing{j: j, peers: e.peers}
	e.outputs = newOutputs(e.state.View())
	e.outputs.ahead = j.s.cfg.Resident
	e.state.PeerOf = e.peers.peerOf
	e.state.Tolerant = j.req.OnDivergence == Warn
	e.confirmation = newConfirmation(j, e.state, e.peers, e.outputs)
	e.confirmation.ran, e.confirmation.while = e.ran, e.handleWhile
	e.recruitment = &recruitment{
		j: j, state: e.state, peers: e.peers, outputs: e.outputs, detection: e.detection, views: e.views, apply: e.apply,
		healing: healingOf(j.req), found: make(chan finding, 1), avoided: make(avoidance),
		unused: make(map[p2ppeer.ID]reservation.Placement), lacking: make(map[int][]string),
	}
	e.collector = &collector{
		j: j, state: e.state, peers: e.peers, accounts: e.confirmation.accounts, next: e.handleNext,
		answers: make(map[view.Process]*jobpb.Collected),
	}
	return e
}

// finish runs the job to its end on peers that have all started it. early are the messages that they
// have sent before that.
func (e *execution) finish(ctx context.Context, early []received) job.Result {
	e.announce()
	e.begun = time.Now()
	if !e.j.resumed {
		e.entry, e.entryTicks = job.NewEntry(e.begun), time.Tick(job.EntryPeriod)
		e.presenceTicks, e.presence = time.Tick(presencePeriod), presence{e.begun, e.begun}
	}
	if e.recruitment.healing != nil {
		e.healTicks = time.Tick(healPeriod)
	}
	if e.j.keeper != nil {
		e.touchTicks = time.Tick(touchPeriod)
	}
	e.pulseTicks = time.Tick(pulsePeriod)
	e.lastUptime = uptime()
	result := e.follow(ctx, early)
	if e.replaced {
		return e.yield(*e.j.takenOver())
	}
	e.recruitment.reportRecoveries()
	if result.Status == job.StatusOK {
		result = e.confirmation.await(ctx)
	}
	if result.Status == job.StatusOK && len(e.j.req.Outputs) > 0 {
		result = e.collector.collect(ctx)
	}
	switch {
	case e.replaced:
		return e.yield(*e.j.takenOver())
	case e.collector.unwritten && e.j.keeper != nil && e.views.group != nil:
		result.Hint = fmt.Sprintf("the files wait at the job's peers, for %v at most: see to the folder, then p2prun --attach %.8s tries again", e.j.req.Away, e.j.spec.ID)
		return e.yield(result)
	}
	for _, t := range e.outputs.tails(e.state.OutputView()) {
		e.j.emit(t)
	}
	if err := e.j.keeper.writeResult(result, e.j.events.unshown()); err != nil {
		e.j.warn(err.Error())
	}
	e.j.s.setOver(e.j.spec.ID)
	e.stop(cmp.Or(result.Message, "done"))
	e.close()
	if result.Status == job.StatusOK && e.state.Uninitialized() && e.j.req.N*e.j.req.R > 1 {
		e.j.warn("the program never called mpj.Init: each rank did the whole work by itself")
	}
	return result
}

// announce tells the user which peer runs each process.
func (e *execution) announce() {
	var placed []Placed
	for _, l := range e.peers.links {
		for _, p := range l.processes {
			placed = append(placed, Placed{Process: p, Peer: l.peer.String()})
		}
	}
	e.j.emit(Event{Kind: PlacedEvent, Placed: placed})
	e.j.phase(Running, 0, 0)
}

// follow handles the early messages, and then events until the job has a result.
func (e *execution) follow(ctx context.Context, early []received) job.Result {
	for _, h := range early {
		if r := e.handle(h); r != nil {
			return *r
		}
	}
	for {
		if r := e.handleNext(ctx, nil); r != nil {
			return *r
		}
	}
}

// handleNext handles the next event. It returns the job's result as soon as there is one. While
// files are collected after that, it returns a result if ctx ends or if replicas report a
// divergence late. handleNext stops waiting when also is closed.
func (e *execution) handleNext(ctx context.Context, also <-chan struct{}) *job.Result {
	handle := e.next(ctx, also)
	r := e.detectSleep()
	if r == nil {
		r = handle()
	}
	if r == nil {
		r = e.giveUp()
	}
	if e.partition.active && r == nil {
		r = e.rejoin()
	}
	if r == nil {
		r = e.outputEarly()
	}
	e.acknowledge()
	return r
}

// handleWhile handles events while a condition holds, for at most the given time. Time in which this
// process did not run, or was cut off, does not count: it could not receive messages.
func (e *execution) handleWhile(ctx context.Context, most time.Duration, condition func() bool) *job.Result {
	for condition() && most > 0 {
		before := time.Now()
		late, cancel := context.WithTimeout(ctx, most)
		r := e.handleNext(ctx, late.Done())
		cancel()
		switch {
		case r != nil:
			return r
		case ctx.Err() != nil:
			return stoppedBy(ctx, e.j.req)
		case !e.partition.active:
			most -= min(time.Since(before), 2*pulsePeriod)
		}
	}
	return nil
}

// ran returns how long the processes have been running, or, for a resumed job, how long the job has
// existed.
func (e *execution) ran() time.Duration {
	if e.j.resumed {
		return e.j.elapsed()
	}
	return time.Since(e.begun)
}

// next waits for the next event and returns the function that handles it.
func (e *execution) next(ctx context.Context, also <-chan struct{}) func() *job.Result {
	quietly := func(do func()) func() *job.Result { return func() *job.Result { do(); return nil } }
	select {
	case h := <-e.peers.inbox.messages:
		return func() *job.Result { return e.receive(h) }
	case <-e.deadlines.reconnect:
		return e.reconnectTimedOut
	case <-e.deadlines.peers:
		e.deadlines.peers = nil
		return e.dropLatePeers
	case <-e.deadlines.exits:
		return e.loseUnreported
	case <-e.deadlines.contact:
		return quietly(e.warnOutOfTouch)
	case <-e.detection.failed:
		return e.handleVerdicts
	case <-e.presenceTicks:
		return quietly(func() {
			if e.partition.active || !e.presence.review(time.Now(), e.peers, e.detection.detector, e.j.replaceAfter()) {
				e.presenceTicks = nil
			}
		})
	case <-e.entryTicks:
		return e.awaitEntry
	case <-e.views.events.news:
		return e.takeAgreed
	case f := <-e.recruitment.found:
		return quietly(func() {
			e.recruitment.handleFound(f)
			e.heal() // another waiting rank may be next
		})
	case <-e.healTicks:
		return quietly(e.heal)
	case <-e.touchTicks:
		return quietly(e.j.keeper.touch)
	case <-e.j.events.news:
		return e.shown
	case <-ctx.Done():
		return func() *job.Result { return stoppedBy(ctx, e.j.req) }
	case <-e.pulseTicks:
		return func() *job.Result {
			if e.j.keeper.restore() {
				e.tellKept()
			}
			return cmp.Or(e.reviewSilence(), e.loseWithholding())
		}
	case <-also:
	}
	return quietly(func() {})
}

// startup returns the start of the job.
func (e *execution) startup() *startup {
	return &startup{j: e.j, peers: e.peers, detection: e.detection, views: e.views, view: e.state.View()}
}

// stop ends the job on every peer and waits until each peer has confirmed that nothing of it is
// left.
func (e *execution) stop(reason string) {
	e.j.phase(Releasing, 0, 0)
	e.recruitment.endSearch()
	for _, l := range e.peers.links {
		if !l.retired {
			l.send(stopMessage(reason))
		}
	}
	var tried <-chan time.Time
	if away := e.peers.count(func(l *link) bool { return l.session.disconnected }); away > 0 {
		e.j.warn(fmt.Sprintf("%s disconnected; trying for %v to report that the job is over", english.Plural(away, "peer", ""), e.j.s.waits.notify))
		tried = time.After(e.j.s.waits.notify)
	}
	timeout := time.After(e.j.s.waits.stop)
	for e.peers.unstopped() > 0 {
		select {
		case h := <-e.peers.inbox.messages:
			if h.back && h.late() {
				continue
			} else if h.back {
				e.peers.switchStream(h)
				h.link.send(stopMessage(reason))
			} else if h.wire != h.link.wire {
				continue // from a stream that has been replaced
			} else if h.err != nil {
				h.link.lose(h.err)
			} else if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); ok {
				h.link.stopped = true
			}
		case <-e.detection.failed:
			for _, l := range e.peers.links {
				if l.suspicion.failed.Load() {
					l.lose(errSilent)
				}
			}
		case <-e.pulseTicks:
			giveUpSilent(e.peers)
		case <-tried:
			e.loseUntold()
		case <-timeout:
			e.j.log.Warn().Int("peers", e.peers.unstopped()).Msg("no confirmation from peers that were told to stop; they end the job when they notice that its stream has ended")
			return
		}
	}
}

// loseUntold gives up the peers that could not be told that the job is over.
func (e *execution) loseUntold() {
	left := 0
	for _, l := range e.peers.links {
		if l.err == nil && l.session.disconnected {
			l.lose(errSilent)
			left++
		}
	}
	var when string
	switch {
	case e.begin == nil: // they wait at most missFor (package launch)
		when = "by themselves within half a minute"
	case e.views.group == nil: // their fault detectors notice the end
		when = fmt.Sprintf("within %v", e.j.hang())
	default:
		e.j.keeper.leave(left)
		when = fmt.Sprintf("by themselves within %v of their disconnection (--away)", e.j.req.Away)
	}
	e.j.warn(fmt.Sprintf("%s could not be told that the job is over, and will end %s", english.Plural(left, "peer", ""), when))
}

// yield ends this side of a job that another process has resumed or can resume. It tells no peer to
// stop or to give up waiting, and fails none. A recruit, which has no part in the job yet, is
// released.
func (e *execution) yield(r job.Result) job.Result {
	e.recruitment.endSearch()
	for _, l := range e.peers.links {
		if l.err == nil && !l.session.disconnected && l.recruit == nil {
			l.end()
			l.session.disconnected = true
		}
	}
	e.j.keeper.leave(len(e.peers.links))
	e.close()
	return r
}

// close releases everything of the execution on this side, and returns the slots that no peer has
// redeemed.
func (e *execution) close() {
	close(e.peers.inbox.done)
	e.detection.close()
	e.views.close()
	for _, stop := range e.peers.stopServing {
		stop()
	}
	for _, l := range e.peers.links {
		e.recruitment.abandonAdditions(l)
	}
	unused := slices.Collect(maps.Values(e.recruitment.unused))
	for _, l := range e.peers.links {
		l.close()
		l.leaveGroup()
		e.j.s.cfg.Host.ConnManager().Unprotect(l.peer, e.peers.tag())
		if !l.redeemed {
			unused = append(unused, l.slots)
		}
	}
	// The job's own context may have ended. Slots of unreachable peers expire.
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	e.reserved.Placements = unused
	e.reserved.Release(ctx, e.j.s.holder)
}

// isReplaced reports whether a stream has ended because another process has resumed the job, from a
// copy of its directory, while this process was cut off or frozen.
func isReplaced(err error) bool {
	reset, ok := errors.AsType[*network.StreamError](err)
	return ok && reset.Remote && reset.ErrorCode == jobpb.Replaced
}

func stopMessage(reason string) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: reason}}}
}

const releaseTimeout = 5 * time.Second
