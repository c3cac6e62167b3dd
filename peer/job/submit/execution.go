package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// execution is a job on its peers: the control streams, and the pure cores that decide how to react
// to the peers' messages. The goroutine of Submitter.Run owns it.
type execution struct {
	j                 *run
	reserved          *reservation.Reservation
	state             *job.State
	outputs           *outputs
	peers             *membership
	explained         bool                              // the user knows the routes
	earlyReports      earlyReports                      // divergence reports about receivers that have yet to join
	toJoin            map[view.Process]backlog          // messages about processes that have yet to join
	answers           map[view.Process]*jobpb.Collected // file lists by process; nil until the answer arrives
	unwritten         bool                              // the files could not be written to the user's folder
	early             []received                        // messages that arrived before the last peer had started
	group             []p2ppeer.ID                      // members of the detector group
	detector          *faultdetect.Group                // nil until all peers have started
	quiet             chan struct{}                     // holds a token when the detector may have failed a peer
	deferredFailures  []*link                           // to peers that the detector failed while out of touch
	partitioned       bool                              // out of touch with the majority, which may continue; see disconnected.go
	reconnectDeadline <-chan time.Time                  // reconnect deadline of the job; also see limit (resume.go)
	peersDeadline     <-chan time.Time                  // deadline for the other peers to reconnect
	exitDeadline      <-chan time.Time                  // deadline for reports on finished processes; see loseUnreported
	pendingChanges    []viewgroup.Committed             // changes agreed on while disconnected, not applied yet
	generation        uint32                            // number of the current detector group
	grouped           time.Time                         // when the current detector group was formed
	accounts          *job.Accounts                     // of the replicas that have ended; nil: job without replicas
	views             *viewgroup.Group                  // the view group; nil: the submitter alone makes the views
	agreed            *agreed                           // events of the view group that are not handled yet
	resumption        *resumption                       // state of a resumed job; nil: this process started the job
	replaced          bool                              // another process has resumed the job
	until             time.Time                         // end of the job's time limit; zero: none
	keptAliveAt       time.Time                         // time of the last message to peers that wait for the start
	staging           bool                              // the peers fetch files; a disconnected peer may reconnect
	begin             *jobpb.ToPeer                     // lets processes leave mpj.Init; nil until all have called it

	entry         *job.Entry         // nil: a resumed job
	entryTicks    <-chan time.Time   // ticks until the job has begun
	healing       *job.Healing       // nil: lost replicas are not replaced
	healTicks     <-chan time.Time   // ticks every healPeriod
	touchTicks    <-chan time.Time   // ticks every touchPeriod; nil: the job is not kept
	pulseTicks    <-chan time.Time   // ticks every pulsePeriod
	presenceTicks <-chan time.Time   // ticks every presencePeriod during startWindow
	presenceAt    time.Time          // time of its last tick
	begun         time.Time          // when all peers had started the job
	warned        bool               // the user knows which peers are out of reach, see outage.go
	lastUptime    time.Duration      // uptime at the last check that this process runs
	search        context.CancelFunc // cancels the running search for a peer; nil: none runs
	searched      int                // rank that the search is for
	found         chan finding       // result of the search
	avoided       avoidance
	unused        map[p2ppeer.ID]reservation.Placement // slots of processes not added; perhaps not redeemed by their peers
	lacking       map[int][]string                     // by rank: reasons for a missing replica that the user knows
	recoveries    []time.Duration                      // durations for which ranks lacked a replica

	stopServing []func()
}

// newExecution returns the execution of a job on the peers of a reservation. The caller must call close.
func newExecution(j *run, reserved *reservation.Reservation) *execution {
	e := &execution{
		j: j, reserved: reserved,
		state:        job.NewState(j.req.N, j.req.R),
		peers:        newMembership(j),
		earlyReports: make(earlyReports),
		toJoin:       make(map[view.Process]backlog),
		unused:       make(map[p2ppeer.ID]reservation.Placement),
		answers:      make(map[view.Process]*jobpb.Collected),
		agreed:       newAgreed(),
		quiet:        make(chan struct{}, 1),
		found:        make(chan finding, 1),
		avoided:      make(avoidance),
		lacking:      make(map[int][]string),
	}
	if j.req.Heal && j.req.R > 1 {
		random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		e.healing = job.NewHealing(j.req.N, func(failed int) time.Duration { return reservation.Backoff(failed, random) })
	}
	for _, p := range reserved.Placements {
		e.peers.add(newLink(p, p.Processes...))
	}
	e.outputs = newOutputs(e.state.View())
	e.state.PeerOf = e.peers.peerOf
	e.state.Tolerant = j.req.OnDivergence == Warn
	if j.req.R > 1 {
		e.accounts = e.newAccounts()
	}
	return e
}

// serve offers the job's contents to peers, which share the fetched contents with each other. It
// protects the connections to them from being trimmed.
func (e *execution) serve(peers ...p2ppeer.ID) {
	for _, p := range peers {
		e.j.s.cfg.Host.ConnManager().Protect(p, e.tag())
	}
	e.stopServing = append(e.stopServing, e.j.s.cfg.Files.Serve(e.j.spec.ID, peers, maps.Clone(e.j.local)))
}

// tag returns the job's tag for the connection manager.
func (e *execution) tag() string { return "job " + e.j.spec.ID }

// finish runs the job to its end on peers that have all started it.
func (e *execution) finish(ctx context.Context) job.Result {
	e.announce()
	e.begun = time.Now()
	if e.resumption == nil {
		entering := time.NewTicker(job.EntryPeriod)
		defer entering.Stop()
		e.entry, e.entryTicks = job.NewEntry(e.begun), entering.C
	}
	if e.healing != nil {
		look := time.NewTicker(healPeriod)
		defer look.Stop()
		e.healTicks = look.C
	}
	if e.j.keeper != nil {
		touch := time.NewTicker(touchPeriod)
		defer touch.Stop()
		e.touchTicks = touch.C
	}
	presence := time.NewTicker(presencePeriod)
	defer presence.Stop()
	e.presenceTicks, e.presenceAt = presence.C, e.begun
	pulse := time.NewTicker(pulsePeriod)
	defer pulse.Stop()
	e.pulseTicks = pulse.C
	e.lastUptime = uptime()
	result := e.follow(ctx)
	if e.replaced {
		return e.yield(e.takenOver())
	}
	e.reportRecoveries()
	if result.Status == job.StatusOK {
		result = e.awaitConfirmation(ctx)
	}
	if result.Status == job.StatusOK && len(e.j.req.Outputs) > 0 {
		result = e.collect(ctx)
	}
	switch {
	case e.replaced:
		return e.yield(e.takenOver())
	case e.unwritten && e.j.keeper != nil && (e.views != nil || e.resumption != nil):
		result.Hint = fmt.Sprintf("the files wait at the job's peers, for %v at most: see to the folder, then p2prun --attach %.8s tries again", e.j.req.Away, e.j.spec.ID)
		return e.yield(result)
	}
	for _, t := range e.outputs.tails(e.state.View()) {
		e.j.emit(t)
	}
	if err := e.j.keeper.writeResult(result, e.j.printer.unseenOutput()); err != nil {
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

// follow handles events until the job has a result.
func (e *execution) follow(ctx context.Context) job.Result {
	early := e.early
	e.early = nil
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
// divergence late. turn stops waiting when also is closed.
func (e *execution) handleNext(ctx context.Context, also <-chan struct{}) *job.Result {
	handle := e.next(ctx, also)
	r := e.detectSleep()
	if r == nil {
		r = handle()
	}
	if e.partitioned && r == nil {
		r = e.rejoin()
	}
	if e.partitioned && r == nil && e.views.Contact() != viewgroup.InTouch && !e.leaves() {
		r = e.reconnectTimedOut() // no peer is left to reconnect to
	}
	if e.resumption != nil && r == nil {
		r = e.catchUp()
	}
	if r == nil {
		r = e.outputEarly()
	}
	e.acknowledge()
	return r
}

// next waits for the next event and returns the function that handles it.
func (e *execution) next(ctx context.Context, also <-chan struct{}) func() *job.Result {
	quietly := func(do func()) func() *job.Result { return func() *job.Result { do(); return nil } }
	select {
	case h := <-e.peers.inbox.messages:
		return func() *job.Result { return e.receive(h) }
	case <-e.reconnectDeadline:
		return e.reconnectTimedOut
	case <-e.peersDeadline:
		e.peersDeadline = nil
		return e.dropLatePeers
	case <-e.exitDeadline:
		return e.loseUnreported
	case <-e.quiet:
		return e.handleVerdicts
	case <-e.presenceTicks:
		return quietly(e.reviewPresence)
	case <-e.entryTicks:
		return e.awaitEntry
	case <-e.agreed.news:
		return e.takeAgreed
	case f := <-e.found:
		return quietly(func() { e.handleFound(f) })
	case <-e.healTicks:
		return quietly(e.heal)
	case <-e.touchTicks:
		return quietly(e.j.keeper.touch)
	case <-e.j.printer.news:
		return e.shown
	case <-ctx.Done():
		return func() *job.Result { r := stoppedBy(ctx, e.j.req); return &r }
	case <-e.pulseTicks:
		return func() *job.Result { return cmp.Or(e.reviewSilence(), e.loseWithholding()) }
	case <-also:
	}
	return quietly(func() {})
}

// receive handles a message, or an error, from a control stream.
func (e *execution) receive(h received) *job.Result {
	h.link.heardAt = time.Now()
	switch {
	case h.back:
		return e.resumed(h)
	case h.link.acceptMessage(h):
		return e.handle(h)
	}
	return nil
}

// handle handles one message of a peer, or the end of its control stream. A peer that ended the
// stream itself is lost to the job, since it ends its part of the job too. After other errors the
// submitter reconnects where it can (disconnected.go, reconnect.go).
func (e *execution) handle(h received) *job.Result {
	switch {
	case h.link.err != nil:
		return nil // a late message of a peer that was given up
	case isReplaced(h.err):
		e.replaced = true
		r := e.takenOver()
		return &r
	case h.link.retired:
		e.handleRetired(h)
		return nil
	case h.link.recruit != nil:
		return e.handleRecruit(h)
	case errors.Is(h.err, errRefused):
		return e.lose(h.link, "the connection to it broke", h.err)
	case garbled(h.err):
		return e.protocolError(h.link, h.err)
	case h.err != nil && (e.partitioned || e.resumption != nil):
		return e.disconnect(h.link, h.err)
	case h.err != nil && e.mayReconnect(h.link, h.err):
		return e.reconnect(h.link, h.err)
	case h.err != nil:
		return e.lose(h.link, "the connection to it broke", h.err)
	}
	if h.msg.GetStaging() != nil { // it only shows that the peer is connected, as receive has noted
		h.link.handleStaging()
		return nil
	}
	if reason := h.msg.GetOutside().GetReason(); reason != "" {
		return e.lose(h.link, plain(reason), errOutside)
	}
	if e.resumption != nil {
		if meant, err := e.resumption.handle(h.link, h.msg); err != nil {
			return e.protocolError(h.link, err)
		} else if meant {
			return nil
		}
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Suspect); ok {
		e.suspect(b.Suspect)
		return nil
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Paths); ok {
		return e.handlePaths(h.link, b.Paths)
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Paused); ok {
		e.paused(h.link, b.Paused)
		return nil
	}
	p, ok := processOf(h.msg)
	if meant, r := e.handleAddition(h, p); meant {
		return r
	}
	if !ok || e.peers.runsOn[p] != h.link {
		return e.protocolError(h.link, fmt.Errorf("unexpected %T of process %v", h.msg.Body, p))
	}
	if (e.resumption != nil || h.link.added[p] != nil) && h.msg.GetOutput() == nil && e.state.View().State(p) == view.Vacant {
		return e.queueUntilJoined(h, p)
	}
	return e.handleReport(p, h)
}

// handleReport handles a peer's message about its process p.
func (e *execution) handleReport(p view.Process, h received) *job.Result {
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		e.peers.recordKey(p, b.Initialized.Key)
		if e.entry != nil {
			e.entry.Initialized(p, time.Now())
		}
		return e.apply(e.state.Initialized(p))
	case *jobpb.FromPeer_Output:
		return e.output(h, p)
	case *jobpb.FromPeer_Exited:
		return e.exited(h.link, p, exitOf(b.Exited, h.link.peer))
	case *jobpb.FromPeer_Aborted:
		return e.apply(e.state.Aborted(p, int(b.Aborted.Code), plain(b.Aborted.Reason), e.peers.peerOf(p)))
	case *jobpb.FromPeer_Collected:
		return e.collected(h.link, p, b.Collected)
	case *jobpb.FromPeer_Ahead:
		return e.apply(e.state.Ahead(p))
	case *jobpb.FromPeer_Stalled:
		return e.stalled(p)
	case *jobpb.FromPeer_UpToDate:
		return e.apply(e.state.UpToDate(p, b.UpToDate.GetSince(), b.UpToDate.GetTerm()))
	case *jobpb.FromPeer_Leaving:
		return e.apply(e.state.Leaves(p))
	case *jobpb.FromPeer_Diverged:
		return e.diverged(h.link, p, b.Diverged)
	case *jobpb.FromPeer_Account:
		return e.account(h.link, p, b.Account)
	case *jobpb.FromPeer_Healed:
		return e.healed(p, b.Healed)
	case *jobpb.FromPeer_Unkept:
		if b.Unkept.Lapsed {
			return e.apply(e.state.Lapsed(p, plain(b.Unkept.Reason)))
		}
		return e.apply(e.state.Unkept(p, plain(b.Unkept.Reason)))
	}
	return nil
}

// exited handles the end of a process. The report must not contradict earlier messages: the peer
// reports a call of mpj.Init before the exit, and mpj.Init returns only once the job has begun. The
// submitter of a resumed job does not know all earlier messages, so it does not check this.
func (e *execution) exited(l *link, p view.Process, x job.Exit) *job.Result {
	if e.resumption == nil && e.state.View().Live(p) && (x.Initialized && !e.state.Called(p) || x.Finalized && !e.state.Begun()) {
		return e.protocolError(l, fmt.Errorf("the reported end of process %v contradicts earlier messages about mpj.Init", p))
	}
	if e.entry != nil && x.Good() {
		e.entry.Arrived(p, time.Now())
	}
	return e.apply(e.state.Exited(p, x))
}

// processOf returns the process that a message is about.
func processOf(m *jobpb.FromPeer) (p view.Process, ok bool) {
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		return b.Initialized.GetProcess().View(), true
	case *jobpb.FromPeer_Added:
		return b.Added.GetProcess().View(), true
	case *jobpb.FromPeer_Finalized:
		return b.Finalized.GetProcess().View(), true
	case *jobpb.FromPeer_Output:
		return b.Output.GetProcess().View(), true
	case *jobpb.FromPeer_Exited:
		return b.Exited.GetProcess().View(), true
	case *jobpb.FromPeer_Aborted:
		return b.Aborted.GetProcess().View(), true
	case *jobpb.FromPeer_Collected:
		return b.Collected.GetProcess().View(), true
	case *jobpb.FromPeer_Ahead:
		return b.Ahead.GetProcess().View(), true
	case *jobpb.FromPeer_Stalled:
		return b.Stalled.GetProcess().View(), true
	case *jobpb.FromPeer_UpToDate:
		return b.UpToDate.GetProcess().View(), true
	case *jobpb.FromPeer_Leaving:
		return b.Leaving.GetProcess().View(), true
	case *jobpb.FromPeer_Diverged:
		return b.Diverged.GetProcess().View(), true
	case *jobpb.FromPeer_Account:
		return b.Account.GetProcess().View(), true
	case *jobpb.FromPeer_Healed:
		return b.Healed.GetProcess().View(), true
	case *jobpb.FromPeer_Unkept:
		return b.Unkept.GetProcess().View(), true
	}
	return p, false
}

// apply carries out the effects of an event. Without a view group, proposed changes take effect at
// once, because the submitter is the only voter.
func (e *execution) apply(s job.Effects) *job.Result {
	r := e.carryOut(s)
	if s.Joined != nil {
		r = cmp.Or(r, e.joined(*s.Joined))
		r = cmp.Or(r, e.handleEarlyReports(*s.Joined))
	}
	for _, p := range s.Outvoted {
		if l := e.peers.runsOn[p]; l != nil {
			e.avoided.Distrust(l.peer)
		}
	}
	for _, c := range s.Propose {
		switch {
		case e.resumption != nil:
			e.peers.ask(e.proposeMessage(c))
		case e.views != nil:
			e.views.Propose(c)
		default:
			r = cmp.Or(r, e.commit(c, []p2ppeer.ID{e.j.s.cfg.Host.ID()}))
		}
	}
	return r
}

// carryOut carries out the effects, except Joined, Outvoted and the proposals, which apply handles.
// It returns the result, if there is one.
func (e *execution) carryOut(s job.Effects) *job.Result {
	if s.View != nil {
		e.outputs.recordLeaders(*s.View)
	}
	if s.View != nil && e.resumption == nil {
		e.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(*s.View)}})
	}
	if s.Begin {
		e.begin = &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: e.peers.keys, Places: e.peers.places()}}}
		if err := e.j.keeper.writeBegin(e.begin.GetBegin()); err != nil {
			e.j.warn(err.Error())
		}
		e.peers.broadcast(e.begin)
		for _, l := range e.peers.links {
			if !l.endpoints.Known(e.j.s.cfg.Host, l.peer) { // not known since staging
				e.probeAddresses(l)
			}
		}
		if e.j.keeper != nil && e.views != nil {
			e.j.keeper.told = true
			e.j.emit(Event{Kind: KeptEvent, Text: fmt.Sprintf("if this p2prun is killed, p2prun --attach %.8s resumes the job", e.j.spec.ID)})
		}
	}
	for _, note := range s.Notes {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	if e.begin != nil && (s.Begin || s.View != nil) {
		e.j.s.setPartners(e.j.spec.ID, e.peers.partners())
	}
	if s.View != nil {
		e.j.emit(Event{Kind: ViewEvent, View: s.View, By: s.By})
		e.heal()
	}
	return s.Result
}

// output passes output of process p to the user.
func (e *execution) output(h received, p view.Process) *job.Result {
	items, err := e.outputs.add(h, p)
	for _, i := range items {
		e.j.printer.print(i)
	}
	if err != nil {
		return e.protocolError(h.link, err)
	}
	return nil
}

// outputEarly passes the queued output of processes that have become output leaders to the user.
func (e *execution) outputEarly() (r *job.Result) {
	for _, h := range e.outputs.takeEarly() {
		if h.link.err == nil && r == nil {
			r = e.output(h, h.msg.GetOutput().GetProcess().View())
		}
	}
	return r
}

// shown handles the printer's receipts for output that has reached the user.
func (e *execution) shown() *job.Result {
	for _, p := range e.outputs.shown(e.j.printer.receipts()) {
		if r := e.apply(e.state.Drained(p)); r != nil {
			return r
		}
	}
	return nil
}

// acknowledge tells the peers of each rank which output the user has, so that they drop it.
func (e *execution) acknowledge() {
	for rank := range e.outputs.unacknowledged {
		m := e.outputs.emitted(rank)
		for k := range e.state.View().R {
			if l := e.peers.runsOn[view.Process{Rank: rank, Replica: k}]; l != nil {
				l.send(m)
			}
		}
		delete(e.outputs.unacknowledged, rank)
	}
}
