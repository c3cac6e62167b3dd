package job

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
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// execution is a job on its peers: the streams to them, and the cores that say
// what follows from what they say. The goroutine of Submitter.Run owns it.
type execution struct {
	j          *run
	reserved   *reservation.Reservation
	watch      *watch
	emission   *emission
	links      []*link // in the order of the placements
	runsOn     map[view.Process]*link
	flows      [][2]flow // of each rank's streams to the user
	unsaid     map[int]bool
	explained  bool                     // the user knows the routes
	keys       []byte                   // public key of each process, rank by rank; zeros for none
	spoke      map[view.Process]bool    // for its rank, in a view so far
	unspoken   map[view.Process]backlog // output that others have sent
	foretold   foretold                 // words about receivers that have yet to join
	toJoin     map[view.Process]backlog // messages about processes that have yet to join
	ended      map[view.Process][2]bool // streams that the process has closed
	withheld   withheld
	answers    map[view.Process]*jobpb.Collected // of those that were asked for their files; nil until they answer
	unwritten  bool                              // the user's folder has not taken the files
	early      []heard                           // said before the last peer had started
	group      []p2ppeer.ID                      // members of the fault detector's group
	detector   *faultdetect.Group                // nil until all peers have started
	quiet      chan struct{}                     // holds a token when there may be a link that is silent
	held       []*link                           // to members that it has failed while this peer was out of touch
	parted     bool                              // those who agree on views may go on without this peer: see away.go
	patience   <-chan time.Time                  // then: when it waits for them no more
	overdue    <-chan time.Time                  // when those must be back that are away, once this peer is in touch
	owing      <-chan time.Time                  // when peers must have said that a process of theirs has ended, see demand
	kept       []viewgroup.Committed             // agreed on meanwhile
	generation uint32                            // of the group
	grouped    time.Time                         // when it began
	accounts   *accounts                         // of what replicas have done in all; nil: there are none
	printed    []transcript                      // by rank: what the user has got
	views      *viewgroup.Group                  // agrees on views; nil: the submitter alone makes them
	agreed     *agreed                           // what it has agreed on
	adopted    *adopted                          // another process has begun the job; nil: this one
	replaced   bool                              // another process goes on with the job
	until      time.Time                         // when the job has taken as long as it may; zero: never
	reassured  time.Time                         // when peers that wait for the start last heard that others still stage
	staging    bool                              // its peers fetch what they lack: one that is disconnected may come back
	begin      *jobpb.ToPeer                     // what lets processes leave mpj.Init; nil until all have called it

	entry      *entry           // nil: another process has begun the job
	entering   <-chan time.Time // until the job has begun
	healing    *healing         // nil: what is lost is not replaced
	looks      <-chan time.Time
	touches    <-chan time.Time   // nil: the job is not kept
	pulse      <-chan time.Time   // every pulsePeriod
	presence   <-chan time.Time   // every presencePeriod, for startWindow
	presenceAt time.Time          // when it ticked last
	begun      time.Time          // when all its peers had started it
	warned     bool               // the user knows which peers are out of reach, see patience.go
	awake      time.Duration      // uptime when it was last known to run
	search     context.CancelFunc // of the search for a peer that is under way, or nil
	searched   int                // the rank that it is for
	found      chan finding       // what came of it
	avoided    avoidance
	unused     map[p2ppeer.ID]reservation.Placement // slots of processes that were not added, which their peers may not have redeemed
	lacking    map[int][]string                     // reasons, already told to the user, why a rank lacks a replica
	recoveries []time.Duration                      // how long ranks were without a replica

	inbox       chan heard
	done        chan struct{} // closed when nobody reads inbox any more
	stopServing []func()
}

// newExecution puts the job's contents on offer to the peers of a reservation.
// It is ended by close.
func newExecution(j *run, reserved *reservation.Reservation) *execution {
	e := &execution{
		j: j, reserved: reserved,
		watch:    newWatch(j.req.N, j.req.R),
		emission: newEmission(j.req.N),
		runsOn:   make(map[view.Process]*link),
		flows:    make([][2]flow, j.req.N),
		unsaid:   make(map[int]bool),
		keys:     make([]byte, j.req.N*j.req.R*proclink.KeySize),
		spoke:    make(map[view.Process]bool),
		unspoken: make(map[view.Process]backlog),
		foretold: make(foretold),
		toJoin:   make(map[view.Process]backlog),
		unused:   make(map[p2ppeer.ID]reservation.Placement),
		ended:    make(map[view.Process][2]bool),
		withheld: make(withheld),
		answers:  make(map[view.Process]*jobpb.Collected),
		agreed:   newAgreed(),
		quiet:    make(chan struct{}, 1),
		found:    make(chan finding, 1),
		avoided:  make(avoidance),
		lacking:  make(map[int][]string),
		inbox:    make(chan heard),
		done:     make(chan struct{}),
	}
	if j.req.Heal && j.req.R > 1 {
		e.healing = newHealing(j.req.N, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	}
	for _, p := range reserved.Placements {
		l := newLink(p, p.Processes...)
		e.links = append(e.links, l)
		for _, q := range p.Processes {
			e.runsOn[q] = l
		}
	}
	e.hearSpeakers(e.watch.View())
	e.watch.peerOf = e.peerOf
	e.watch.tolerant = j.req.OnDivergence == Warn
	if j.req.R > 1 {
		e.accounts = e.newAccounts()
	}
	e.serveSites()
	return e
}

// serve puts the job's contents on offer to peers, which share with each other what they fetch. The
// connections to them are to stay.
func (e *execution) serve(peers ...p2ppeer.ID) {
	for _, p := range peers {
		e.j.s.cfg.Host.ConnManager().Protect(p, e.tag())
	}
	e.stopServing = append(e.stopServing, e.j.s.cfg.Files.Serve(e.j.spec.ID, peers, maps.Clone(e.j.local)))
}

// tag names the job to the connection manager.
func (e *execution) tag() string { return "job " + e.j.spec.ID }

// finish runs the job to its end on peers that have all started it.
func (e *execution) finish(ctx context.Context) Result {
	e.announce()
	e.begun = time.Now()
	if e.adopted == nil {
		entering := time.NewTicker(entryPeriod)
		defer entering.Stop()
		e.entry, e.entering = newEntry(e.begun), entering.C
	}
	if e.healing != nil {
		look := time.NewTicker(healPeriod)
		defer look.Stop()
		e.looks = look.C
	}
	if e.j.keeper != nil {
		touch := time.NewTicker(touchPeriod)
		defer touch.Stop()
		e.touches = touch.C
	}
	presence := time.NewTicker(presencePeriod)
	defer presence.Stop()
	e.presence, e.presenceAt = presence.C, e.begun
	pulse := time.NewTicker(pulsePeriod)
	defer pulse.Stop()
	e.pulse = pulse.C
	e.awake = uptime()
	result := e.follow(ctx)
	if e.replaced {
		return e.yield(e.takenOver())
	}
	e.sumUp()
	if result.Status == StatusOK {
		result = e.hearOut(ctx)
	}
	if result.Status == StatusOK && len(e.j.req.Outputs) > 0 {
		result = e.collect(ctx)
	}
	switch {
	case e.replaced:
		return e.yield(e.takenOver())
	case e.unwritten && e.j.keeper != nil && (e.views != nil || e.adopted != nil):
		result.Hint = fmt.Sprintf("the files wait at the job's peers, for %v at most: see to the folder, then p2prun --attach %.8s tries again", e.j.req.Away, e.j.spec.ID)
		return e.yield(result)
	}
	e.printTails()
	if err := e.j.keeper.writeResult(result, e.j.printer.rest()); err != nil {
		e.j.warn(err.Error())
	}
	e.j.s.setOver(e.j.spec.ID)
	e.stop(cmp.Or(result.Message, "done"))
	e.close()
	if result.Status == StatusOK && e.watch.Uninitialized() && e.j.req.N*e.j.req.R > 1 {
		e.j.warn("the program never called mpj.Init: each rank did the whole work by itself")
	}
	return result
}

// announce tells the user where everything runs.
func (e *execution) announce() {
	var placed []Placed
	for _, l := range e.links {
		for _, p := range l.processes {
			placed = append(placed, Placed{Process: p, Peer: l.peer.String()})
		}
	}
	e.j.emit(Event{Kind: PlacedEvent, Placed: placed})
	e.j.phase(Running, 0, 0)
}

// follow handles what happens until the job has a result.
func (e *execution) follow(ctx context.Context) Result {
	early := e.early
	e.early = nil
	for _, h := range early {
		if r := e.hear(h); r != nil {
			return *r
		}
	}
	for {
		if r := e.turn(ctx, nil); r != nil {
			return *r
		}
	}
}

// turn handles the next thing that happens. The result is that of the job, once
// it has one; after that, that of the end of ctx, or of replicas that say late that they
// have not done the same. When also is closed, turn
// has nothing to wait for.
func (e *execution) turn(ctx context.Context, also <-chan struct{}) *Result {
	handle := e.next(ctx, also)
	r := e.wake()
	if r == nil {
		r = handle()
	}
	if e.parted && r == nil {
		r = e.rejoin()
	}
	if e.parted && r == nil && e.views.Contact() != viewgroup.InTouch && !e.leaves() {
		r = e.despair() // nobody is left to come back to
	}
	if e.adopted != nil && r == nil {
		r = e.catchUp()
	}
	if r == nil {
		r = e.hearUntimely()
	}
	e.acknowledge()
	return r
}

// next waits for the next thing that happens, and returns what handles it.
func (e *execution) next(ctx context.Context, also <-chan struct{}) func() *Result {
	quietly := func(do func()) func() *Result { return func() *Result { do(); return nil } }
	select {
	case h := <-e.inbox:
		return func() *Result { return e.receive(h) }
	case <-e.patience:
		return e.despair
	case <-e.overdue:
		e.overdue = nil
		return e.late
	case <-e.owing:
		return e.demand
	case <-e.quiet:
		return e.hearSilence
	case <-e.presence:
		return quietly(e.reviewPresence)
	case <-e.entering:
		return e.awaitEntry
	case <-e.agreed.news:
		return e.takeAgreed
	case f := <-e.found:
		return quietly(func() { e.take(f) })
	case <-e.looks:
		return quietly(e.heal)
	case <-e.touches:
		return quietly(e.j.keeper.touch)
	case <-e.j.printer.news:
		return e.shown
	case <-ctx.Done():
		return func() *Result { r := stoppedBy(ctx, e.j.req); return &r }
	case <-e.pulse:
		return func() *Result { return cmp.Or(e.reviewSilence(), e.demandOutput()) }
	case <-also:
	}
	return quietly(func() {})
}

// receive handles what has come in over a link.
func (e *execution) receive(h heard) *Result {
	h.link.heardAt = time.Now()
	switch {
	case h.back:
		return e.resumed(h)
	case h.link.hears(h):
		return e.hear(h)
	}
	return nil
}

// hear handles one message of a peer, or the end of its stream: a peer whose
// control stream ends is lost to the job if it has ended the stream itself, since its side
// ends the job too.
func (e *execution) hear(h heard) *Result {
	switch {
	case h.link.err != nil:
		return nil // late words of a peer that was given up
	case isReplaced(h.err):
		e.replaced = true
		r := e.takenOver()
		return &r
	case h.link.retired:
		e.hearRetired(h)
		return nil
	case h.link.recruit != nil:
		return e.hearRecruit(h)
	case errors.Is(h.err, errRefused):
		return e.lose(h.link, "the connection to it broke", h.err)
	case garbled(h.err):
		return e.breach(h.link, h.err)
	case h.err != nil && (e.parted || e.adopted != nil):
		return e.strand(h.link, h.err)
	case h.err != nil && e.mendable(h.link, h.err):
		return e.mend(h.link, h.err)
	case h.err != nil:
		return e.lose(h.link, "the connection to it broke", h.err)
	}
	if h.msg.GetStaging() != nil { // the peer is connected, and that has been noted
		h.link.hearStaging()
		return nil
	}
	if e.adopted != nil {
		if meant, err := e.adopted.hear(h.link, h.msg); err != nil {
			return e.breach(h.link, err)
		} else if meant {
			return nil
		}
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Suspect); ok {
		e.suspect(b.Suspect)
		return nil
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Paths); ok {
		return e.heardPaths(h.link, b.Paths)
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Paused); ok {
		e.paused(h.link, b.Paused)
		return nil
	}
	p, ok := processOf(h.msg)
	if meant, r := e.hearAddition(h, p); meant {
		return r
	}
	if !ok || e.runsOn[p] != h.link {
		return e.breach(h.link, fmt.Errorf("unexpected %T of process %v", h.msg.Body, p))
	}
	if (e.adopted != nil || h.link.added[p] != nil) && h.msg.GetOutput() == nil && e.watch.View().State(p) == view.Vacant {
		return e.putOff(h, p)
	}
	return e.hearOf(p, h)
}

// hearOf handles what a peer says of its process p.
func (e *execution) hearOf(p view.Process, h heard) *Result {
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		e.keep(p, b.Initialized.Key)
		if e.entry != nil {
			e.entry.initialized(p, time.Now())
		}
		return e.apply(e.watch.Initialized(p))
	case *jobpb.FromPeer_Output:
		return e.output(h, p)
	case *jobpb.FromPeer_Exited:
		return e.exited(h.link, p, exitOf(b.Exited, h.link.peer))
	case *jobpb.FromPeer_Aborted:
		return e.apply(e.watch.Aborted(p, int(b.Aborted.Code), plain(b.Aborted.Reason), e.peerOf(p)))
	case *jobpb.FromPeer_Collected:
		return e.collected(h.link, p, b.Collected)
	case *jobpb.FromPeer_Ahead:
		return e.apply(e.watch.Ahead(p))
	case *jobpb.FromPeer_Stalled:
		return e.stalled(p)
	case *jobpb.FromPeer_UpToDate:
		return e.apply(e.watch.UpToDate(p, b.UpToDate))
	case *jobpb.FromPeer_Leaving:
		return e.apply(e.watch.Leaves(p))
	case *jobpb.FromPeer_Diverged:
		return e.diverged(h.link, p, b.Diverged)
	case *jobpb.FromPeer_Account:
		return e.account(h.link, p, b.Account)
	case *jobpb.FromPeer_Healed:
		return e.healed(p, b.Healed)
	case *jobpb.FromPeer_Unkept:
		if b.Unkept.Lapsed {
			return e.apply(e.watch.Lapsed(p, plain(b.Unkept.Reason)))
		}
		return e.apply(e.watch.Unkept(p, plain(b.Unkept.Reason)))
	}
	return nil
}

// exited handles the end of a process. Its peer has reported before that the process called mpj.Init, which
// returns only once the job has begun. After attaching to a job of another process, not all of that is known.
func (e *execution) exited(l *link, p view.Process, x exit) *Result {
	if e.adopted == nil && e.watch.View().Live(p) && (x.Initialized && !e.watch.at(p).initialized || x.Finalized && !e.watch.begun) {
		return e.breach(l, fmt.Errorf("the reported end of process %v contradicts earlier messages about mpj.Init", p))
	}
	if e.entry != nil && x.good() {
		e.entry.arrived(p, time.Now())
	}
	return e.apply(e.watch.Exited(p, x))
}

// keep takes note of the public key of a process, which proves it to others.
func (e *execution) keep(p view.Process, key []byte) {
	if len(key) == proclink.KeySize && p.Replica < e.j.req.R {
		copy(e.keys[(p.Rank*e.j.req.R+p.Replica)*proclink.KeySize:], key)
	}
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

// apply carries out what the watch asks for. Without a group, what it proposes is
// agreed on at once: the submitter's is the only opinion.
func (e *execution) apply(s step) *Result {
	r := e.carryOut(s)
	if s.Joined != nil {
		r = cmp.Or(r, e.joined(*s.Joined))
		r = cmp.Or(r, e.hearForetold(*s.Joined))
	}
	for _, p := range s.Outvoted {
		if l := e.runsOn[p]; l != nil {
			e.avoided.Distrust(l.peer)
		}
	}
	for _, c := range s.Propose {
		switch {
		case e.adopted != nil:
			e.ask(e.proposeMessage(c))
		case e.views != nil:
			e.views.Propose(c)
		default:
			r = cmp.Or(r, e.commit(c, []p2ppeer.ID{e.j.s.cfg.Host.ID()}))
		}
	}
	return r
}

func (e *execution) carryOut(s step) *Result {
	if s.View != nil {
		e.hearSpeakers(*s.View)
	}
	if s.View != nil && e.adopted == nil {
		e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(*s.View)}})
	}
	if s.Begin {
		e.begin = &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: e.keys, Places: e.places()}}}
		if err := e.j.keeper.writeBegin(e.begin.GetBegin()); err != nil {
			e.j.warn(err.Error())
		}
		e.tell(e.begin)
		for _, l := range e.links {
			if !l.doors.Known(e.j.s.cfg.Host, l.peer) { // since it staged the job
				e.knock(l)
			}
		}
		if e.j.keeper != nil && e.views != nil {
			e.j.keeper.told = true
			e.j.emit(Event{Kind: KeptEvent, Text: fmt.Sprintf("should this p2prun be killed, p2prun --attach %.8s goes on with the job", e.j.spec.ID)})
		}
	}
	for _, note := range s.Notes {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	if e.begin != nil && (s.Begin || s.View != nil) {
		e.j.s.setPartners(e.j.spec.ID, e.partners())
	}
	if s.View != nil {
		e.j.emit(Event{Kind: ViewEvent, View: s.View, By: s.By})
		e.heal()
	}
	return s.Result
}

// peerOf names the peer that runs p, for the user.
func (e *execution) peerOf(p view.Process) string {
	if l := e.runsOn[p]; l != nil {
		return short(l.peer)
	}
	return "that is not known here"
}

// reaches reports whether the peer that runs p is known here and has not been given up.
func (e *execution) reaches(p view.Process) bool {
	l := e.runsOn[p]
	return l != nil && l.err == nil
}

// tell says the same to every peer that has been told to start.
func (e *execution) tell(m *jobpb.ToPeer) {
	for _, l := range e.links {
		if !l.retired && (l.recruit == nil || l.recruit.phase > recruitStaging) {
			l.say(m)
		}
	}
}
