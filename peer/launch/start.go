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
		j.members, j.settings.explain, j.settings.heal = members, m.Explain, m.Heal
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
	j.protected.protect(j.submitter, j.members.Addrs)
	j.working.Add(1)
	go j.launchAll(slices.Collect(maps.Keys(j.members.Addrs)))
}

// spareCells is the number of doorbells for added processes. Processes without one use pipes.
const spareCells = 16

// place returns the facts about this part of the job.
func (j *job) place() switchboard.Place {
	return switchboard.Place{Self: j.service.host.ID(), Machine: machineOf(j.spec.ID), N: j.spec.N, R: j.spec.R}
}

// joined adds the row of a process that joins the job.
func (j *job) joined(row *jobpb.Member) error {
	p := row.GetProcess().View()
	if _, known := j.members.PeerOf[p]; known { // its key may be new
		j.members.Learn(p, row.GetKey())
		return nil
	}
	j.superseded(row)
	if err := j.members.Add(row, j.here.local[p] != nil); err != nil {
		return err
	}
	peer := p2ppeer.ID(row.GetPeer())
	j.protected.add(peer, j.members.Addrs[peer])
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
func (j *job) choose(p view.Process, c *supervisor.Command) (err error) {
	if j.program.Wasm() {
		return j.chooseModule(p, c)
	}
	c.Program, err = j.stager.executable()
	c.Args = j.spec.Args
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
