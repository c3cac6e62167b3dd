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

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A job is this peer's part of a job. The goroutine that calls run owns all
// that is not said to be fixed; others reach it through do and query.
type job struct {
	admission          // fixed
	progress  progress // of staging
	service   *Service
	submitter p2ppeer.ID
	order     []view.Process // processes that run here, in the order requested; written under service.mu
	since     time.Time
	log       zerolog.Logger

	ctx     context.Context // ends with the job
	cancel  context.CancelFunc
	events  chan func()
	done    chan struct{}  // closed when no event is taken any more
	running sync.WaitGroup // goroutines that end with ctx, done or their process
	working sync.WaitGroup // goroutines that still make something: files, processes

	state     State                        // written under service.mu
	partners  map[p2ppeer.ID]time.Duration // whom it needs, and how long each may be silent; under service.mu
	begun     bool                         // mpj.Init has returned, or may
	onlyKeeps bool                         // nothing runs here any more; what was printed waits for the submitter
	weighAt   time.Time                    // when what it keeps is measured again; zero: it has no slots to give back, or it is being measured
	ran       bool                         // its processes have been started, and it stands in the journal
	stagedAt  time.Time                    // since when everything is here
	restsAt   time.Time                    // since when all its processes here have ended; zero: some run
	leaving   bool                         // the owner takes the machine back, see HandOver
	empty     time.Time                    // since when none of its processes here is in the view, while it leaves
	stopBy    time.Time                    // when the owner wants it to be gone, see Stop; zero: he has not said so
	cut       error                        // why its processes were ended for the owner, or nil
	pausedAt  time.Time                    // since when the owner needs the machine, see Pause; zero: he does not; written under service.mu
	stands    atomic.Bool                  // its processes are to stand still for that
	saidStand bool                         // the submitter has been told so
	ended     error                        // why the job is over, or nil

	grant   limits.Grant  // fixed
	upload  pacer         // fixed
	group   *cgroup.Group // nil: none
	halting atomic.Int32  // what its processes do for the guard
	folder  scratch.Job
	local   map[view.Process]*process
	letGo   map[view.Process]reservation.Key // processes that were added and are being ended: see add.go
	metered chan *meter                      // of added processes, for the guard
	serving []func()                         // stop offering files
	unshare func()                           // permanently stops offering the files that the job's other peers may have

	members      membership
	places       [][2]int // machine and cluster of each rank, once they have begun
	heal         bool     // replicas that are lost are replaced
	view         view.View
	ahead        view.View             // newer, with a process that is not in the membership table yet; epoch 0: none
	views        *viewgroup.Group      // nil: the submitter alone makes them
	changes      []viewgroup.Committed // all that were agreed on, for a submitter without a log of them
	adrift       time.Time             // since when this peer is cut off from the majority of those who agree on views; zero: it is not
	detector     *faultdetect.Group
	watchers     uint32              // generation of the detector's group
	hang         time.Duration       // how long a peer may be silent, by the detector
	reportsUntil time.Time           // how long the job reports its presence after its start
	failed       map[p2ppeer.ID]bool // says the detector, of those in its group
	alive        aliveCheck          // of the programs
	watching     aliveCheck          // of their supervisors
	own          *proc.Turns         // what this peer had of the processors when somebody was last late; nil: nobody is

	submitterSide
	ways
}

// do hands the owner an event and returns once it is being handled. It is false
// when the job is over.
func (j *job) do(event func()) bool {
	select {
	case j.events <- event:
		return true
	case <-j.done:
		return false
	}
}

// query asks the owner of a job, and returns what it answers. It is not ok when the job is over.
func query[T any](j *job, ask func() T) (answer T, ok bool) {
	answered := make(chan T, 1)
	if !j.do(func() { answered <- ask() }) {
		return answer, false
	}
	return <-answered, true
}

// run is the job from its admission to its end. It closes the stream, and those by
// which the submitter comes back.
func (j *job) run(stream network.Stream, in pbio.Reader) {
	j.log.Info().Stringer("signed_by", j.submitter).Str("class", string(j.decision.Class)).
		Str("name", j.spec.Name).Str("kind", string(j.decision.Kind)).Str("digest", j.program.Digest).Str("signed", j.signed).
		Int("processes", len(j.order)).Msg("job taken")
	j.attach(stream, in)
	j.knock()
	j.shareFiles()
	j.working.Add(1)
	go j.stage()
	j.loop()
	if !j.asked && j.refusal == nil {
		j.detach() // nobody is to wait for more; the writer may be stuck
	}
	j.cleanUp()
	if j.asked {
		j.refusal = stopped()
	}
	j.leave()
	j.running.Wait()
	e := j.finalEntry()
	if j.ran {
		j.record(e)
	}
	j.log.Info().AnErr("reason", j.ended).Dur("cpu", e.CPU).Int64("memory", e.Memory).Msg("job gone")
	if left := j.service.forget(j); left == 0 {
		j.service.giveMemoryBack()
	}
}

const (
	// tickPeriod is how often the job looks at the clock, and asks its supervisors whether they
	// are alive.
	tickPeriod = time.Second
	// reportPeriod is how often the job tells the submitter that this peer is there, until its fault
	// detector watches it.
	reportPeriod = 250 * time.Millisecond
	// reportsFor is how long the job does so after it has joined the fault detector's group: for longer
	// than the submitter waits for these reports (startWindow of package job).
	reportsFor = 10 * time.Second
)

// loop handles events until the job is over.
func (j *job) loop() {
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	alive := time.NewTicker(alivePeriod)
	defer alive.Stop()
	report := time.NewTicker(reportPeriod)
	defer report.Stop()
	for j.ended == nil {
		var ready chan<- *jobpb.FromPeer
		if j.attached != nil && j.next() {
			ready = j.attached.out
		}
		select {
		case ready <- j.head:
			j.head = nil
		case event := <-j.events:
			event()
		case <-tick.C:
			j.tick()
		case <-report.C:
			j.reportPresence()
		case <-alive.C:
			if j.state == Running {
				j.excuseAll()
				j.checkAlive()
			}
		case <-j.ctx.Done():
			j.end(errors.New("this peer is closing"))
		}
	}
	close(j.done)
}

// end makes the job be over; the first reason stays.
func (j *job) end(reason error) {
	if j.ended == nil {
		j.ended = reason
		j.enter(Ending)
	}
}

// refuse ends the job with a last message that tells the submitter why.
func (j *job) refuse(m *jobpb.FromPeer, reason error) {
	if j.ended == nil {
		j.refusal = m
		j.end(reason)
	}
}

func (j *job) enter(s State) {
	j.service.mu.Lock()
	defer j.service.mu.Unlock()
	j.state = s
}

// say queues a message to the submitter.
func (j *job) say(m *jobpb.FromPeer) {
	if len(j.said) >= maxSaid {
		j.end(fmt.Errorf("more than %d messages to the submitter", maxSaid))
		return
	}
	j.said = append(j.said, m)
}

// maxSaid bounds what a submitter can have a peer keep, in messages: each of its
// processes says a few things, it tells for hours that it stages, and of each peer at most one for each time that the group
// of the detector begins anew.
const maxSaid = 1 << 18

// hear handles one message of the submitter, which may come in any order; only
// the right one is obeyed.
func (j *job) hear(m *jobpb.ToPeer) {
	var err error
	j.heardAt = time.Now()
	switch b := m.Body.(type) {
	case *jobpb.ToPeer_Start:
		if err = j.inOrder(m, Staged); err == nil {
			j.start(b.Start)
		}
	case *jobpb.ToPeer_Join:
		if err = j.inOrder(m, Running); err == nil {
			err = j.join(b.Join)
		}
	case *jobpb.ToPeer_Agree:
		if err = j.inOrder(m, Running); err == nil {
			err = j.agree(b.Agree)
		}
	case *jobpb.ToPeer_Begin:
		if err = j.inOrder(m, Running); err == nil {
			err = j.begin(b.Begin)
		}
	case *jobpb.ToPeer_View:
		if err = j.inOrder(m, Starting, Running); err == nil {
			err = j.adopt(b.View)
		}
	case *jobpb.ToPeer_Joined:
		if err = j.inOrder(m, Starting, Running); err == nil {
			err = j.joined(b.Joined)
		}
	case *jobpb.ToPeer_Emitted:
		j.emitted(b.Emitted)
	case *jobpb.ToPeer_Collect:
		if err = j.inOrder(m, Running); err == nil {
			err = j.collect(b.Collect)
		}
	case *jobpb.ToPeer_Add:
		if err = j.inOrder(m, Running); err == nil {
			err = j.add(b.Add)
		}
	case *jobpb.ToPeer_Drop:
		err = j.drop(b.Drop)
	case *jobpb.ToPeer_Introduce:
		if err = j.inOrder(m, Running); err == nil {
			err = j.introduce(b.Introduce)
		}
	case *jobpb.ToPeer_Propose:
		if err = j.inOrder(m, Running); err == nil {
			err = j.propose(b.Propose)
		}
	case *jobpb.ToPeer_Stop:
		j.asked = true
		err = fmt.Errorf("stopped by the submitter: %s", clip(b.Stop.GetReason()))
	default:
		err = errOrder(m.Body)
	}
	if err != nil {
		j.end(err)
	}
}

// inOrder says whether the job is in a state in which m means something.
func (j *job) inOrder(m *jobpb.ToPeer, states ...State) error {
	if slices.Contains(states, j.state) {
		return nil
	}
	return errOrder(m.Body)
}

// errOrder says that a message came at a time when it means nothing.
func errOrder(m any) error { return fmt.Errorf("%T out of order", m) }

// tick lets a second pass.
func (j *job) tick() {
	j.awaitCut()
	j.askOver()
	j.overstay()
	j.heed()
	j.shareNeeds()
	switch j.state {
	case Staged:
		j.awaitStart()
	case Running:
		j.reportAdditions()
		j.checkSupervisors()
		j.drift()
		j.seek()
		j.standIn()
		j.linger()
		j.depart()
	}
}

// begin completes the membership table and lets mpj.Init return in every
// process here; where ways are to be explained, once they are known.
func (j *job) begin(m *jobpb.Begin) error {
	if j.keys != nil {
		return nil
	}
	if n := len(m.Keys); n != 0 && n != j.spec.N*j.spec.R*proclink.KeySize {
		return fmt.Errorf("keys of %d bytes", n)
	}
	if n := len(m.Places); n != 0 && n != j.spec.N {
		return fmt.Errorf("places of %d ranks of %d", n, j.spec.N)
	}
	j.keys = append(make([]byte, 0, len(m.Keys)), m.Keys...)
	for _, f := range j.waiting {
		f()
	}
	j.waiting = nil
	for _, p := range m.Places {
		j.places = append(j.places, [2]int{int(p.GetMachine()), int(p.GetCluster())})
	}
	if !j.doors.Known(j.service.host, j.submitter) { // since it brought the job
		j.knock()
	}
	if !j.explain {
		j.release()
		return nil
	}
	j.running.Add(1)
	go j.tellPaths(j.probes())
	return nil
}

// release lets mpj.Init return.
func (j *job) release() {
	j.begun = true
	for _, id := range j.order {
		j.local[id].begin()
	}
}

// cleanUp leaves nothing of the job on this peer.
func (j *job) cleanUp() {
	j.cancel()
	j.working.Wait()
	for _, p := range j.local {
		p.kill() // all at once, before waiting for each
	}
	for _, p := range j.local {
		p.close()
	}
	if j.detector != nil {
		j.detector.Close()
	}
	if j.views != nil {
		j.views.Close()
	}
	if j.group != nil {
		if err := j.group.Remove(); err != nil {
			j.log.Error().Err(err).Msg("control group stays")
		}
	}
	if j.board != nil {
		j.board.Close()
	}
	for _, stop := range j.serving {
		stop()
	}
	for _, f := range j.waiting {
		f() // gives up, as ctx has ended
	}
	j.unprotect()
	s := j.service.config
	s.Files.Store().Unpin(j.spec.ID)
	if err := j.folder.Remove(); err != nil {
		j.log.Error().Err(err).Msg("scratch folder stays")
	}
	for _, key := range j.slots() {
		s.Reservations.Release(key)
	}
}

// slots returns the keys of all slots that the job has here.
func (j *job) slots() []reservation.Key {
	keys := []reservation.Key{j.key}
	for _, p := range j.local {
		if p.added {
			keys = append(keys, p.slot)
		}
	}
	return keys
}
