package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
)

// start reads the membership table and starts the processes.
func (j *job) start(m *jobpb.Start) {
	if cut := j.reclaim.cut; cut != nil {
		j.refuse(started(cut, nil), cut)
		return
	}
	members, err := switchboard.NewTable(m.Members, j.place(), j.here.order)
	var kinds []proclink.Kind
	if err == nil {
		kinds, err = proclink.ParseKinds(m.Channels)
	}
	if err == nil {
		j.board.SetTable(members)
		j.settings.explain, j.settings.heal = m.Explain, m.Heal
		j.presence.setAway(m, time.Now())
		kinds = switchboard.Both(kinds, j.service.config.Channels)
		err = j.adopt(m.View)
	}
	if err != nil {
		j.refuse(started(err, nil), err)
		return
	}
	j.enter(Starting)
	j.shareNeeds() // until the job begins, its control stream must not break
	spare := 0
	if j.settings.heal {
		spare = spareCells
	}
	j.board.Start(kinds, spare)
	j.protected().protect(j.submitter, j.board.Table().Addrs)
	j.working.Add(1)
	go j.launchAll(slices.Collect(maps.Keys(j.board.Table().Addrs)))
}

// spareCells is the number of doorbells for added processes. Processes without one use pipes.
const spareCells = 16

// place returns the facts about this part of the job.
func (j *job) place() switchboard.Place {
	return switchboard.Place{Self: j.service.host.ID(), Machine: machineOf(j.spec.ID), N: j.spec.N, R: j.spec.R}
}

// protected returns what protects the connections of the job.
func (j *job) protected() protectedPeers {
	return protectedPeers{host: j.service.host, mu: &j.service.protecting, tag: "launch " + j.spec.ID}
}

// joined adds the row of a process that joins the job.
func (j *job) joined(row *jobpb.Member) error {
	p := row.GetProcess().View()
	if _, known := j.board.Table().PeerOf[p]; known { // its key may be new
		j.board.Table().Learn(p, row.GetKey())
		return nil
	}
	j.superseded(row)
	if err := j.board.Table().Add(row, j.here.local[p] != nil); err != nil {
		return err
	}
	peer := p2ppeer.ID(row.GetPeer())
	j.protected().add(peer, j.board.Table().Addrs[peer])
	j.take(j.views.ahead)
	return nil
}

// An instance is a running process: its supervisor, and this peer's ends of its control socket and its
// pipes.
type instance struct {
	program *supervisor.Process
	group   *cgroup.Group // nil: none
	socket  *proclink.Conn
	pipes   [streams]*os.File // standard output, standard error
	memory  int64             // peak memory of group in bytes, read before it was killed; 0: unknown
}

// stdout is the index of standard output, the stream that users receive as the output of a rank. streams is
// the number of output streams of a process.
const (
	stdout  = 0
	streams = 2
)

// note records the peak memory of the control group before the group is removed.
func (i *instance) note() {
	if i.group != nil {
		i.memory = max(i.memory, i.group.Usage().MostMemory)
	}
}

func (i *instance) close() {
	i.program.Close()
	if i.group != nil {
		_ = i.group.Remove() // removing the job's group tries again
	}
	i.socket.Close()
	for _, p := range i.pipes {
		p.Close()
	}
}

// startsAtOnce bounds the processes that start at one time. Each costs two executions of the peer's own
// binary.
const startsAtOnce = 4

// launchAll starts all processes, or none. peers are the job's peers.
func (j *job) launchAll(peers []p2ppeer.ID) {
	defer j.working.Done()
	instances := make([]*instance, len(j.here.order))
	var distances []*jobpb.Distance
	var measuring sync.WaitGroup
	measuring.Go(func() { distances = measure(j.ctx, j.service.host, peers) }) // runs meanwhile
	var starting errgroup.Group
	starting.SetLimit(startsAtOnce)
	err := j.confinement.makeGroup()
	for i, p := range j.here.order {
		if err != nil {
			break
		}
		starting.Go(func() (err error) {
			instances[i], err = j.launch(p)
			return err
		})
	}
	if err = errors.Join(err, starting.Wait()); err == nil {
		err = j.confinement.lowerPriority()
	}
	measuring.Wait()
	if err == nil && j.do(func() { j.launched(instances, distances) }) {
		return
	}
	j.abandon(slices.DeleteFunc(instances, func(i *instance) bool { return i == nil }))
	j.do(func() { j.refuse(started(err, nil), err) })
}

// abandon kills processes that are not watched yet.
func (j *job) abandon(instances []*instance) {
	for _, i := range instances {
		i.program.Kill() // all at once, before waiting for each
	}
	j.confinement.raisePriority()
	for _, i := range instances {
		i.close()
	}
}

// launch starts one process.
func (j *job) launch(p view.Process) (*instance, error) {
	line, inherited, err := proclink.Pair()
	if err != nil {
		return nil, fmt.Errorf("start process %v: %w", p, err)
	}
	defer inherited.Close()
	i := &instance{socket: line}
	var held supervisor.Limits
	i.group, held, err = j.confinement.confine(p.String())
	c := supervisor.Command{
		Title:    "job " + j.spec.ID + " process " + p.String(),
		Settings: j.spec.Settings,
		Scratch:  j.folder.Process(p), Limits: held, Socket: inherited,
		Sandbox: j.service.config.Sandbox.Means, Readable: j.service.config.Readable, Session: j.service.session,
		Answered: func(stopped bool) { j.do(func() { j.handleAnswer(p, stopped) }) },
	}
	err = errors.Join(err, j.choose(p, &c))
	for s, write := range []**os.File{&c.Stdout, &c.Stderr} {
		var pipeErr error
		i.pipes[s], *write, pipeErr = os.Pipe()
		err = errors.Join(err, pipeErr)
		defer (*write).Close()
	}
	if err == nil {
		i.program, err = supervisor.Start(c)
	}
	if err != nil {
		if i.group != nil {
			err = j.confinement.nameLimit(i.group, err)
			_ = i.group.Remove()
		}
		line.Close()
		i.pipes[0].Close() // Close of a nil file is harmless
		i.pipes[1].Close()
		return nil, fmt.Errorf("start process %v: %w", p, err)
	}
	return i, nil
}

// choose sets the program that the process executes, and its arguments.
func (j *job) choose(p view.Process, c *supervisor.Command) error {
	program, err := j.stager.executable()
	if c.Program, c.Args = program, j.spec.Args; j.stager.program.Wasm() {
		j.service.config.Engine.runModule(c, program, j.spec, j.confinement.moduleConfig(j.spec), p)
	}
	return err
}

// launched begins to watch the processes after all of them have started.
func (j *job) launched(instances []*instance, distances []*jobpb.Distance) {
	for i, id := range j.here.order {
		j.here.local[id].run(instances[i])
	}
	j.enter(Running)
	j.record.begin(len(j.here.order))
	j.running.Add(1)
	go newGuard(j, instances).run() // ends with ctx
	j.send(started(nil, distances))
}

// stage fetches the job's files and lays them out.
func (j *job) stage() {
	defer j.working.Done()
	err := j.stager.bring(j.ctx, j.here.order, j.confinement.checkInputs)
	if err == nil && j.stager.program.Wasm() {
		var module string
		if module, err = j.stager.executable(); err == nil {
			err = newCompiler(j.service, j.spec, j.stager.program.Digest, &j.confinement, j.log).bring(j.ctx, module)
		}
	}
	j.do(func() { j.staged(err) })
}

func (j *job) staged(err error) {
	if err != nil {
		j.refuse(prepared(err, nil), err)
		return
	}
	j.reportStaging()
	j.presence.lastMessageAt, j.presence.stagedAt = time.Now(), time.Now()
	j.enter(Staged)
	j.send(prepared(nil, machineOf(j.spec.ID)))
}

// reportStaging reports progress. Until the processes run, it also tells the submitter that this peer is
// present.
func (j *job) reportStaging() { j.send(staging(j.stager.here.Load(), j.stager.total.Load())) }

// reportPresence tells the submitter that this peer is present, as long as its fault detector may not watch
// this peer yet.
func (j *job) reportPresence() {
	switch j.state {
	case Staging, Staged, Starting:
		j.reportStaging()
	case Running:
		if time.Now().Before(j.detection.reportsUntil) {
			j.reportStaging()
		}
	}
}

// add starts one more process here, or reports to the submitter why it cannot.
func (j *job) add(m *jobpb.Add) error {
	ids, err := checkJoiner([]*jobpb.Process{m.GetProcess()}, j.spec.N, j.spec.R)
	if err != nil {
		return err
	}
	if !j.settings.heal {
		return errOrder(m)
	}
	key, err := readKey(m.GetKey())
	if err != nil {
		return err
	}
	if before := j.here.local[ids[0]]; before != nil && before.waitsToJoin() {
		j.dropProcess(before)
	}
	if _, err = j.service.config.Reservations.Redeem(key, j.spec.ID, j.submitter); err != nil {
		j.send(added(ids[0], key, fmt.Errorf("redeem reservation key: %w", err)))
		return nil
	}
	if err = j.hasPlace(ids[0]); err != nil {
		j.service.config.Reservations.Release(key)
		j.send(added(ids[0], key, err))
		return nil
	}
	p := newProcess(j, ids[0])
	p.joining, p.added, p.slot = true, true, key
	j.admitProcess(p)
	j.reorder(append(slices.Clone(j.here.order), p.id))
	processes := len(j.here.order)
	j.working.Go(func() { j.startAdded(p, processes) }) // ends with its start, or ctx
	return nil
}

// hasPlace returns an error if this part of the job cannot have one more process.
func (j *job) hasPlace(id view.Process) error {
	if err := j.reclaim.bars(); err != nil {
		return err
	}
	switch {
	case j.keeping.outputOnly || j.settings.init != initReturns:
		return errors.New("nothing of the job runs here")
	case j.views.current.State(id) != view.Vacant:
		return fmt.Errorf("process %v has joined already", id)
	}
	if _, ending := j.here.dropping[id]; ending {
		return fmt.Errorf("process %v is still being ended", id)
	}
	if peer, known := j.board.Table().PeerOf[id]; known {
		return fmt.Errorf("process %v runs on peer %s", id, peer)
	}
	if other, here := j.here.ofRank(id.Rank); here {
		return fmt.Errorf("process %v of the same rank is here", other)
	}
	return nil
}

// reorder sets which processes run here from now on, and adjusts the upload, CPU and weight limits of this
// part of the job to their number.
func (j *job) reorder(order []view.Process) {
	j.service.mu.Lock()
	j.here.order = order
	j.service.mu.Unlock()
	if err := j.confinement.resize(len(order)); err != nil {
		j.log.Warn().Err(err).Msg("CPU limit of the job not changed")
	}
}

// startAdded lays out the files of an added process and starts it. processes is the number of processes
// of this part of the job, including the new one.
func (j *job) startAdded(p *process, processes int) {
	var i *instance
	err := j.stager.bringAdded(j.ctx, p.id, processes, j.confinement.checkInputs)
	if err == nil {
		i, err = j.launch(p.id)
	}
	if j.do(func() { j.processStarted(p, i, err) }) {
		return
	}
	if i != nil {
		i.program.Kill()
		i.close()
	}
	j.service.config.Reservations.Release(p.slot)
}

// processStarted begins to watch an added process, unless the process was dropped meanwhile.
func (j *job) processStarted(p *process, i *instance, err error) {
	if j.here.local[p.id] == p && err == nil {
		p.run(i)
		j.running.Go(func() { // ends with ctx at the latest
			select {
			case j.metered <- newMeter(p, i):
			case <-j.ctx.Done():
			}
		})
		j.send(added(p.id, p.slot, nil))
		return
	}
	if j.here.local[p.id] == p {
		j.forgetProcess(p)
	} else if err == nil {
		err = errDropped
	}
	j.working.Go(func() { // ends with the process
		if i != nil { // do not raise the group's priority: the job's other processes still yield to the owner's work
			i.program.Kill()
			i.close()
		}
		j.vacate(p, err)
	})
}

// drop drops the process that was added with a key, if there is one, and reports when nothing of it is
// left. It does nothing once other processes have been told that the process joins.
func (j *job) drop(m *jobpb.Drop) error {
	key, err := readKey(m.GetKey())
	if err != nil {
		return err
	}
	id := m.GetProcess().View()
	ends, ending := j.here.dropping[id]
	switch p := j.here.local[id]; {
	case p != nil && p.added && p.slot == key:
		if p.waitsToJoin() {
			j.dropProcess(p)
		}
	case !ending || ends != key: // otherwise vacate reports it
		j.send(added(id, key, errDropped))
	}
	return nil
}

// dropProcess ends an added process and removes everything of it.
func (j *job) dropProcess(p *process) {
	j.forgetProcess(p)
	p.failedInView = true
	p.queue.dropEarly()
	if p.live == nil {
		return // processStarted does the rest
	}
	p.kill()
	j.working.Go(func() { // ends with the process
		p.live.close()
		j.vacate(p, errDropped)
	})
}

// forgetProcess removes an added process from those that run here.
func (j *job) forgetProcess(p *process) {
	j.here.dropping[p.id] = p.slot
	delete(j.here.local, p.id)
	j.board.Detach(p.id)
	j.reorder(slices.DeleteFunc(slices.Clone(j.here.order), func(id view.Process) bool { return id == p.id }))
	j.liveness.ended(p.id)
}

// vacate frees the resources of a process that does not run here, and reports why it does not run.
func (j *job) vacate(p *process, why error) {
	p.cancel()
	if err := j.folder.RemoveProcess(p.id); err != nil {
		j.log.Error().Err(err).Msg("scratch folder of a process not removed; it stays until the job ends")
	}
	j.service.config.Reservations.Release(p.slot)
	j.do(func() {
		delete(j.here.dropping, p.id)
		j.send(added(p.id, p.slot, why))
	})
}

// superseded drops an added process, if row says that another peer runs it.
func (j *job) superseded(row *jobpb.Member) {
	if p := j.here.local[row.GetProcess().View()]; p != nil && p.waitsToJoin() && p2ppeer.ID(row.GetPeer()) != j.service.host.ID() {
		j.dropProcess(p)
	}
}

// checkAlive asks the programs whether they are alive, and ends those that hang.
func (j *job) checkAlive() {
	ask, hung := j.liveness.checkPrograms(j.halting.excused(), func(late []view.Process) map[view.Process][]int {
		instances := make([]*instance, len(late))
		for n, id := range late {
			instances[n] = j.here.local[id].live
		}
		found, pids := processesOf(new(supervisor.Census), instances), make(map[view.Process][]int)
		for n, id := range late {
			pids[id] = found[instances[n]]
		}
		return pids
	})
	for _, id := range ask {
		j.here.local[id].send(proclink.Message{Type: proclink.Ping, Count: j.liveness.questions}, nil)
	}
	for _, id := range hung {
		j.here.local[id].end(j.liveness.hungProgram(id))
	}
}

// checkSupervisors asks the supervisors whether they are alive and whether their program is stopped. A program
// that was stopped before it joined the job gets no questions from checkAlive.
func (j *job) checkSupervisors() {
	ask, hung := j.liveness.checkSupervisors(func(id view.Process) int { return j.here.local[id].live.program.Supervisor() })
	for _, id := range ask {
		j.here.local[id].live.program.Ask()
	}
	for _, id := range hung {
		p := j.here.local[id]
		reason, stopped := j.liveness.hungSupervisor(id)
		if !stopped { // kill the supervisor first: end resumes it, and it could still report a different end
			p.live.program.KillSupervisor()
		}
		p.end(reason)
	}
}

// handleAnswer handles a supervisor's answer. Between Hello and Finalized, checkAlive checks whether the
// program is stopped or hangs, so handleAnswer ignores that it is stopped. A suspended program counts as
// running.
func (j *job) handleAnswer(id view.Process, stopped bool) {
	if p := j.here.local[id]; p != nil { // otherwise it was dropped
		j.liveness.supervisorAnswered(id, stopped && j.halting.Load() == notHalted && (!p.greeted || p.finalized))
	}
}

// collect offers the output files of a process that has ended to the submitter.
func (j *job) collect(m *jobpb.Collect) error {
	id := m.GetProcess().View()
	p, ok := j.here.local[id]
	if !ok {
		return errOrder(m)
	}
	if p.asked { // the answer is on its way, or will be repeated
		return nil
	}
	p.asked = true
	if p.exit == nil || p.reason != "" || p.failedInView {
		j.send(collected(id, nil, fmt.Errorf("process %v has not exited by itself", id)))
		return nil
	}
	j.working.Add(1)
	go func() { // ends with ctx
		defer j.working.Done()
		manifest, files, err := p.match(m.Patterns)
		j.do(func() {
			if err == nil {
				j.stager.offer(files)
			}
			j.send(collected(id, manifest, err))
		})
	}()
	return nil
}

// populate creates the processes for which the job's key reserves slots.
func (j *job) populate() {
	j.views.current = view.New(j.spec.N, j.spec.R)
	j.views.current.Epoch = 0 // the submitter's first view has epoch 1
	j.liveness, j.record = newLiveness(j.log), newRecord(j.service.config.Journal, j.admission, j.since, j.log)
	j.board = j.service.switchboard.NewBoard(j.ctx, switchboard.Config{
		Job: j.spec.ID, UploadLimited: limitsUpload(j.grant), Do: j.do, Report: func(ps []switchboard.Path) { j.send(pathsOf(ps)) }, Log: j.log,
	})
	j.board.SetView(j.views.current)
	for _, id := range j.admission.processes {
		p := newProcess(j, id)
		p.joining = j.admission.joining
		j.admitProcess(p)
	}
}

// admitProcess adds a process to those that run here.
func (j *job) admitProcess(p *process) {
	j.here.local[p.id] = p
	j.board.Attach(p.id, switchboard.Port{Send: p.send, Refuse: p.refuse, Pace: p.pace})
}
