package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// This file resumes a job whose submitter process was killed:
//
//	home                    this process                         peers
//	 |-- spec, peers, shown -->|                                   |  the job continues
//	 |<-- number --------------|                                   |
//	 |                         |== view group, as a new member ===>|
//	 |                         |<-- all changes of the view -------|
//	 |                         |-- Resume(job, 0, new process) --->|
//	 |                         |<-- all its messages, from the first one
//	 |                         |<-- output not acknowledged -------|
//	 |<-- shown ---------------|-- Emitted, Collect, ... --------->|
//
// This process is a member of the view group that is behind. So it begins as a submitter that was cut
// off (disconnected.go): it holds the changes until each peer has reconnected or is late, because the
// changes follow from the peers' messages. The State thus receives everything that the earlier
// process received, in the same order for each peer. A message about a process that joined after the
// job began waits until the process is in the view here.
//
// The number of the earlier process stays in the view group until the leader removes it. A number is
// never used again, so this process records its own before the other members learn it.
//
// Once this process has rejoined, it does everything that the earlier process did. It replaces lost
// replicas (recruit.go) with the recorded program and inputs (work.go). A process that is recorded
// and not in the view joins before the search for another one starts.

// Attach resumes a kept job and continues as Run would have. When ctx ends, the job is cancelled.
// The result has StatusUsage if there is no such job, or if another process follows it.
func (s *Submitter) Attach(ctx context.Context, id string, events *EventQueue) job.Result {
	k, err := s.reopen(id)
	if err != nil {
		return refuse(events, job.Result{Status: job.StatusUsage, Message: err.Error()})
	}
	defer k.close()
	shown, printed, err := k.positions()
	begin, wrong := k.begin()
	if err = errors.Join(err, wrong); err != nil {
		return refuse(events, job.Result{Status: job.StatusUsage, Message: err.Error()})
	}
	if err := checkOutputDir(k.kept.Request); err != nil && ctx.Err() == nil && k.kept.Result == nil {
		return refuse(events, job.Result{
			Status: job.StatusUsage, Message: err.Error(),
			Hint: fmt.Sprintf("make the folder %s, then attach again", k.kept.Request.OutputDir),
		})
	}
	defer k.conclude(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !k.kept.Ends.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, k.kept.Ends, errTimeout)
		defer stop()
	}
	j, lacks := s.runAgain(k)
	defer s.forget(id)
	j.events = events
	events.begin(k, cancel)
	defer events.finish()
	e := newResumption(j, shown, printed, begin)
	e.j.until, _ = ctx.Deadline()
	if over := k.kept.Result; over != nil { // not all peers may know
		s.setOver(j.spec.ID)
		e.stop(cmp.Or(over.Message, "done"))
		e.close()
		for _, o := range k.rest(shown) {
			j.emit(o)
		}
		return j.conclude(*over)
	}
	if r := joinAgain(e); r != nil {
		if ctx.Err() != nil {
			r = stoppedBy(ctx, j.req)
			e.stop(r.Message)
		}
		e.close()
		return j.conclude(*r)
	}
	if lacks != nil {
		j.warn(fmt.Sprintf("lost replicas will not be replaced: %v", lacks))
	}
	return j.conclude(e.finish(ctx, nil))
}

// joinAgain joins the view group of a resumed job under a number that was never used. The result is
// not nil if that is impossible.
func joinAgain(e *execution) *job.Result {
	first := slices.DeleteFunc(slices.Clone(e.peers.links), func(l *link) bool { return l.processes[0].Replica >= e.j.req.R })
	if !hasGroup(e.j.req.R, len(e.detection.membersOf(first))) {
		return e.j.nothingLeft() // its peers do not continue without the submitter
	}
	err := errNoNumbers
	if e.peers.numbersKnown() {
		number := len(e.views.roster().peers)
		e.views.numbers = append(e.views.numbers, number)
		e.detection.generation = firstGeneration(len(e.views.numbers))
		if err = e.j.keeper.writeNumber(number); err == nil {
			err = e.views.rejoin(e.state.View())
		}
	}
	if err != nil {
		e.j.keeper.leave(len(e.peers.links))
		return &job.Result{Status: job.StatusUsage, Message: fmt.Sprintf("job %s cannot be resumed: %v", e.j.spec.ID, err)}
	}
	return nil
}

var errNoNumbers = errors.New("its record lacks the numbers of its peers in the view group")

// runAgain returns the run of a kept job. The error is the reason why lost replicas cannot be
// replaced.
func (s *Submitter) runAgain(k *keeper) (j *run, lacks error) {
	req := k.kept.Request
	req.Explain = false
	j = &run{
		s: s, req: req, keeper: k, resumed: true, known: knownPeers{s: s, excluded: make(map[p2ppeer.ID]bool)},
		spec: jobspec.Spec{ID: k.kept.Job, Submitter: s.cfg.Host.ID(), N: req.N, R: req.R, Name: req.Name},
		log:  s.cfg.Log.With().Str("job", k.kept.Job).Logger(),
	}
	j.known.spec = &j.spec
	j.status = Status{Job: k.kept.Job, Name: req.Name, N: req.N, R: req.R, Since: k.kept.Since}
	if req.Heal {
		lacks = k.readWork(j)
		j.req.Heal = lacks == nil
	}
	return j, lacks
}

// newResumption returns the execution of a job on its recorded peers, and starts to open streams to
// them.
func newResumption(j *run, shown [][2]uint64, printed []transcript, begin *jobpb.ToPeer) *execution {
	r := &reservation.Reservation{Job: j.spec.ID}
	for _, p := range j.keeper.kept.Peers {
		r.Placements = append(r.Placements, reservation.Placement{Peer: p.Peer, Processes: p.Processes, Machine: p.SlotsOn})
		j.s.cfg.Host.Peerstore().AddAddrs(p.Peer, readAddrs(p.Addrs), peerstore.PermanentAddrTTL)
	}
	e := newExecution(j, r)
	e.peers.serveSites()
	e.begin, e.peers.reopens = begin, true
	e.partition.active, e.partition.patient = true, true
	e.views.numbers = slices.Clone(j.keeper.kept.Numbers)
	e.collector.early = make(map[view.Process]*jobpb.Collected)
	e.outputs.resume(shown, printed)
	if begin != nil {
		e.state.Apply(job.Resumed{})
	}
	if e.confirmation.accounts != nil {
		e.confirmation.accounts.OutputLeaders = nil // earlier ones are unknown
	}
	e.deadlines.reconnect, e.deadlines.contact = time.After(j.req.Away), time.After(j.s.waits.contact)
	latest := make(map[p2ppeer.ID]*link)
	for i, l := range e.peers.links {
		kept := j.keeper.kept.Peers[i]
		l.redeemed, l.reported.machine, l.number, l.keys = true, kept.Machine, kept.Number, kept.keysOf()
		if before := latest[l.peer]; before != nil { // the peer was recruited again later
			before.lose(errRetired)
		}
		latest[l.peer] = l
	}
	for _, l := range e.peers.links {
		e.disconnect(l, nil)
	}
	return e
}

func readAddrs(texts []string) (all []ma.Multiaddr) {
	for _, text := range texts {
		if a, err := ma.NewMultiaddr(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// nothingLeft returns the result of a job that no peer runs any more.
func (j *run) nothingLeft() *job.Result {
	return &job.Result{
		Status:  job.StatusLost,
		Message: fmt.Sprintf("nothing of job %s is left at its peers: it was over, or they have waited for longer than %v (--away)", j.spec.ID, j.req.Away),
		Hint:    "start it again",
	}
}
