package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// A job is this peer's part of a job. The goroutine that runs run owns all fields that are not marked as
// fixed. Other goroutines reach them through do and query.
type job struct {
	admission admission     // fixed
	spec      *jobspec.Spec // fixed
	here      processSet
	service   *Service
	submitter p2ppeer.ID
	since     time.Time
	log       zerolog.Logger

	ctx     context.Context // ends with the job
	cancel  context.CancelFunc
	events  chan func()
	done    chan struct{}  // closed when the job accepts no more events
	running sync.WaitGroup // goroutines that end with ctx, done or their process
	working sync.WaitGroup // goroutines that still create files or processes

	state     State                        // written under service.mu
	partners  map[p2ppeer.ID]time.Duration // peers that the job needs, and how long each may be silent; under service.mu
	record    record
	keeping   keeping
	reclaim   reclaim     // return of the machine to its owner
	suspended atomic.Bool // its processes are to be suspended for the owner
	ended     error       // why the job ended, or nil

	grant       limits.Grant // fixed
	confinement confinement
	halting     halting // whether its processes are suspended for the owner
	folder      scratch.Job
	metered     chan *meter // meters of added processes, for the guard
	stager      stager      // stages its files

	board     *switchboard.Board // the channels of the processes here
	settings  settings
	views     viewsState
	detection detection // detection of silent peers
	liveness  *liveness // signs of life of the programs and their supervisors

	control  control
	presence presence // whether the submitter is connected
}

// A settings holds what the submitter has set with Start and Begin, and how far mpj.Init is.
type settings struct {
	init    initState
	explain bool     // the submitter is told how other peers are reached
	heal    bool     // lost replicas are replaced
	places  [][2]int // machine and cluster of each rank
}

// An initState tells how far mpj.Init is in the processes of a job.
type initState int

const (
	awaitsBegin initState = iota // the submitter has not sent Begin
	probesPaths                  // the paths to the other peers are probed
	initReturns                  // mpj.Init has returned, or may return
)

// do passes an event to the job's goroutine, and returns once that goroutine handles it. It returns false
// if the job has ended.
func (j *job) do(event func()) bool {
	select {
	case j.events <- event:
		return true
	case <-j.done:
		return false
	}
}

// query runs ask on the job's goroutine and returns the answer. It returns false if the job has ended.
func query[T any](j *job, ask func() T) (answer T, ok bool) {
	answered := make(chan T, 1)
	if !j.do(func() { answered <- ask() }) {
		return answer, false
	}
	return <-answered, true
}

// run runs the job from its admission to its end. It closes the given stream, and the streams by which the
// submitter reconnects.
func (j *job) run(stream network.Stream, in pbio.Reader) {
	j.log.Info().Stringer("signed_by", j.submitter).Str("class", string(j.admission.decision.Class)).
		Str("name", j.spec.Name).Str("kind", string(j.admission.decision.Kind)).Str("digest", j.stager.program.Digest).Str("signed", j.admission.signed).
		Int("processes", len(j.here.order)).Msg("job accepted")
	j.attach(stream, in)
	j.probeAddresses()
	var pace func(ctx context.Context, n int) error
	if limitsUpload(j.grant) {
		pace = j.confinement.upload.wait
	}
	j.stager.share(j.admission.fellows, j.service.host.Peerstore(), pace)
	j.working.Add(1)
	go j.stage()
	j.loop()
	if !j.presence.asked && j.control.last == nil {
		j.control.detach() // the writer may be stuck, and no message is left to wait for
	}
	j.cleanUp()
	if j.presence.asked {
		j.control.last = stopped()
	}
	j.control.leave(j.service.ctx)
	j.running.Wait()
	j.board.Wait()
	j.record.finish(j.ended, j.stager.here.Load(), j.here)
	e := j.record.entry
	j.log.Info().AnErr("reason", j.ended).Dur("cpu", e.CPU).Int64("memory", e.Memory).Msg("job removed")
	if left := j.service.forget(j); left == 0 {
		j.service.freeUnusedMemory()
	}
}

const (
	// tickPeriod is the interval between two calls of tick, which also checks whether the supervisors are
	// alive.
	tickPeriod = time.Second
	// reportPeriod is the interval at which the job tells the submitter that this peer is present, until
	// the submitter's fault detector watches this peer.
	reportPeriod = 250 * time.Millisecond
	// reportsFor is how long these reports continue after the job has joined the fault detector's group. It
	// is longer than the submitter waits for them (startWindow of package submit).
	reportsFor = 10 * time.Second
)

// loop handles events until the job ends.
func (j *job) loop() {
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	alive := time.NewTicker(alivePeriod)
	defer alive.Stop()
	report := time.NewTicker(reportPeriod)
	defer report.Stop()
	for j.ended == nil {
		ready, head := j.control.next(j.here.nextOutput)
		select {
		case ready <- head:
			j.control.head = nil
		case event := <-j.events:
			event()
		case <-tick.C:
			j.tick()
		case <-report.C:
			j.reportPresence()
		case <-alive.C:
			if j.state == Running {
				j.checkAlive()
			}
		case <-j.ctx.Done():
			j.end(errors.New("this peer is closing"))
		}
	}
	close(j.done)
}

// end marks the job as ended. Only the first reason counts.
func (j *job) end(reason error) {
	if j.ended == nil {
		j.ended = reason
		j.enter(Ending)
	}
}

// refuse ends the job with a last message that tells the submitter the reason.
func (j *job) refuse(m *jobpb.FromPeer, reason error) {
	if j.ended == nil {
		j.control.last = m
		j.end(reason)
	}
}

func (j *job) enter(s State) {
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.state = s
}

// send queues a message to the submitter.
func (j *job) send(m *jobpb.FromPeer) {
	if err := j.control.queue(m); err != nil {
		j.end(err)
	}
}

// handle handles one message of the submitter. Messages may arrive in any order; handle acts only on those
// that fit the state of the job.
func (j *job) handle(m *jobpb.ToPeer) {
	var err error
	j.presence.lastMessageAt = time.Now()
	switch b := m.Body.(type) {
	case *jobpb.ToPeer_Start:
		if err = j.checkState(m, Staged); err == nil {
			j.start(b.Start)
		}
	case *jobpb.ToPeer_Join:
		if err = j.checkState(m, Running); err == nil {
			err = j.join(b.Join)
		}
	case *jobpb.ToPeer_Agree:
		if err = j.checkState(m, Running); err == nil {
			err = j.agree(b.Agree)
		}
	case *jobpb.ToPeer_Begin:
		if err = j.checkState(m, Running); err == nil {
			err = j.begin(b.Begin)
		}
	case *jobpb.ToPeer_View:
		if err = j.checkState(m, Starting, Running); err == nil {
			err = j.adopt(b.View)
		}
	case *jobpb.ToPeer_Joined:
		if err = j.checkState(m, Starting, Running); err == nil {
			err = j.joined(b.Joined)
		}
	case *jobpb.ToPeer_Emitted:
		j.here.emitted(b.Emitted)
	case *jobpb.ToPeer_Collect:
		if err = j.checkState(m, Running); err == nil {
			err = j.collect(b.Collect)
		}
	case *jobpb.ToPeer_Add:
		if err = j.checkState(m, Running); err == nil {
			err = j.add(b.Add)
		}
	case *jobpb.ToPeer_Drop:
		err = j.drop(b.Drop)
	case *jobpb.ToPeer_Stop:
		j.presence.asked = true
		err = fmt.Errorf("stopped by the submitter: %s", clip(b.Stop.GetReason()))
	default:
		err = errOrder(m.Body)
	}
	if err != nil {
		j.end(err)
	}
}

// checkState returns an error unless the job is in one of the given states.
func (j *job) checkState(m *jobpb.ToPeer, states ...State) error {
	if slices.Contains(states, j.state) {
		return nil
	}
	return errOrder(m.Body)
}

// errOrder returns the error for a message that does not fit the state of the job.
func errOrder(m any) error { return fmt.Errorf("%T out of order", m) }

// tick runs the periodic checks of the job, once per tickPeriod.
func (j *job) tick() {
	j.loseDisconnected()
	j.askOver()
	j.endAtDeadline()
	j.applyPause()
	j.shareNeeds()
	switch j.state {
	case Staged:
		if err := j.presence.neglects(time.Now()); err != nil {
			j.end(err)
		}
	case Running:
		if j.here.waiting() { // this peer is connected, and its added processes do not run yet
			j.reportStaging()
		}
		j.checkSupervisors()
		j.checkPartition()
		if j.settings.init == initReturns {
			j.board.SearchPaths()
		}
		j.actForSubmitter()
		j.linger()
		j.depart()
	}
}

// begin completes the membership table and lets mpj.Init return in every process here. If the submitter
// wants the paths explained, mpj.Init returns only after they have been probed.
func (j *job) begin(m *jobpb.Begin) error {
	if j.settings.init != awaitsBegin {
		return nil
	}
	if n := len(m.Keys); n != 0 && n != j.spec.N*j.spec.R*proclink.KeySize {
		return fmt.Errorf("public keys of %d bytes", n)
	}
	if n := len(m.Places); n != 0 && n != j.spec.N {
		return fmt.Errorf("machines of %d ranks in a job of %d", n, j.spec.N)
	}
	j.settings.init = probesPaths
	j.board.Begin(m.Keys)
	for _, p := range m.Places {
		j.settings.places = append(j.settings.places, [2]int{int(p.GetMachine()), int(p.GetCluster())})
	}
	if !j.presence.endpoints.Known(j.service.host, j.submitter) { // since the submitter brought the job
		j.probeAddresses()
	}
	if !j.settings.explain {
		j.release()
		return nil
	}
	j.board.Explain(j.release)
	return nil
}

// release lets mpj.Init return.
func (j *job) release() {
	j.settings.init = initReturns
	for _, id := range j.here.order {
		j.here.local[id].begin()
	}
}

// cleanUp removes everything of the job from this peer.
func (j *job) cleanUp() {
	j.cancel()
	j.working.Wait()
	j.here.closeAll()
	if j.detection.group != nil {
		j.detection.group.Close()
	}
	j.leaveViews()
	if err := j.confinement.removeGroups(nil); err != nil {
		j.log.Error().Err(err).Msg("control group not removed")
	}
	j.board.Close()
	j.stager.close()
	j.protected().release(j.submitter, j.board.Table().Addrs)
	s := j.service.config
	if err := j.folder.Remove(); err != nil {
		j.log.Error().Err(err).Msg("scratch folder not removed")
	}
	for _, key := range append(j.here.slots(), j.admission.key) {
		s.Reservations.Release(key)
	}
}

// migrate makes the job migrate from now on.
func (j *job) migrate() {
	j.reclaim.leaving = true
	j.depart()
}

// depart tells the submitter, once the job has begun, which processes are to leave. It ends the job here
// after they have left the view.
func (j *job) depart() {
	if !j.reclaim.leaving || j.settings.init != initReturns || j.ended != nil {
		return
	}
	needed := false
	for _, id := range j.here.order {
		p := j.here.local[id]
		if !p.failedInView && !p.leaving {
			p.leaving = true
			j.send(leaving(id))
		}
		needed = needed || !p.failedInView
	}
	if j.reclaim.left(needed, time.Now()) && !j.views.voting(j.service.host.ID()) {
		j.end(errors.New("handed over"))
	}
}

// stop ends the job here within the given time, or at once if the job has no replicas or has not begun.
func (j *job) stop(within time.Duration) {
	if within <= 0 || j.spec.R == 1 || j.settings.init != initReturns {
		j.cutShort(errStopped)
		return
	}
	j.reclaim.stopBefore(time.Now().Add(within))
	j.migrate()
}

// cutShort ends the job's processes here and tells the submitter why. If the job is staged, the submitter
// learns that when it starts the job, since it expects no message earlier.
func (j *job) cutShort(why error) {
	if j.reclaim.cut != nil {
		return
	}
	j.reclaim.cut, j.reclaim.stopBy = why, time.Now()
	switch j.state {
	case Staging:
		j.refuse(prepared(why, nil), why)
	case Starting:
		j.refuse(started(why, nil), why)
	case Running:
		j.here.endAll(why.Error())
	}
}

// endAtDeadline ends a job that is here longer than its owner wants, after the submitter has had time to
// end it.
func (j *job) endAtDeadline() {
	switch cut, end := j.reclaim.deadline(time.Now()); {
	case cut:
		j.cutShort(errStopped)
	case end:
		j.end(j.reclaim.cut)
	}
}

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
	for p := range j.board.Table().PeerOf {
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

// shareNeeds publishes to the service the peers that the job needs.
func (j *job) shareNeeds() {
	needs := j.needs()
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.partners = needs
}

// needs returns the peers that the job needs, and how long each may be silent. These are its submitter, the
// peers with processes in the view, and the voters of the view group. While the job is prepared, it needs
// only the submitter. Between Start and Begin it needs none.
func (j *job) needs() map[p2ppeer.ID]time.Duration {
	if j.settings.init == awaitsBegin && !j.preparing() {
		return nil
	}
	partners := map[p2ppeer.ID]time.Duration{j.submitter: j.detection.hang}
	for p := range j.board.Table().Addrs {
		if j.views.votes(p) {
			partners[p] = j.detection.hang
		}
	}
	for process, p := range j.board.Table().PeerOf {
		if j.views.current.Has(process) {
			partners[p] = j.detection.hang
		}
	}
	delete(partners, j.service.host.ID())
	return partners
}
