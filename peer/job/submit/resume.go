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
//	 |                         |-- Resume(job, 0, new process) --->|
//	 |                         |<-- all its messages, from the first one
//	 |                         |<-- Agreed: each change of the view  |  reports.go: which to believe
//	 |                         |<-- output not acknowledged -------|
//	 |<-- shown ---------------|-- Emitted, Collect, Propose ----->|
//
// So the State receives everything that the previous process received, in the same order for each
// peer. This process applies the changes of the view once each peer has reconnected or is late,
// because the changes follow from the peers' messages. It is no member of the view group, for it
// lacks the group's log. It makes no views, sends none, and requests changes through the peers,
// which detect silent peers themselves. It knows the processes that joined after the job began like
// all others. A message about such a process waits until the process is in the view here.
//
// Once this process has caught up, it replaces lost replicas as the previous one did (recruit.go),
// with the recorded program and inputs (work.go). A process that is recorded and not in the view
// joins before the search for another one starts. docs/rationale.md tells how no two peers get the
// same number in the view group.

// A resumption applies the changes of the view that the peers of a resumed job report, and decides
// which peers to wait for.
type resumption struct {
	j             *run
	state         *job.State
	peers         *membership
	deadlines     *deadlines
	commit        func(c view.Change, by []p2ppeer.ID) *job.Result // applies a change that these peers report
	lose          func(l *link, why string, err error) *job.Result // gives a peer up
	protocolError func(l *link, err error) *job.Result             // gives up a peer that broke the protocol

	waits    waiting
	due      bool // give up late peers that run nothing, in the next loseLate
	asked    bool // a request is not agreed on yet
	caughtUp bool // with everything that the connected peers know
}

// waiting tells for which disconnected peers a resumption still waits.
type waiting int

const (
	forAll   waiting = iota
	forParts         // not for peers whose processes have all failed
	forNone
)

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
	if e.recruitment.healing != nil && !e.peers.numbersKnown() {
		lacks = errors.New("the record lacks data that their peers need")
	}
	if lacks != nil && k.kept.Result == nil {
		j.warn(fmt.Sprintf("lost replicas will not be replaced: %v", lacks))
	}
	if over := k.kept.Result; over != nil { // not all peers may know
		s.setOver(j.spec.ID)
		e.stop(cmp.Or(over.Message, "done"))
		e.close()
		for _, o := range k.rest(shown) {
			j.emit(o)
		}
		return j.conclude(*over)
	}
	return j.conclude(e.finish(ctx, nil))
}

// runAgain returns the run of a kept job. The error is the reason why lost replicas cannot be
// replaced.
func (s *Submitter) runAgain(k *keeper) (j *run, lacks error) {
	req := k.kept.Request
	req.Explain = false
	j = &run{
		s: s, req: req, keeper: k, known: knownPeers{s: s, excluded: make(map[p2ppeer.ID]bool)},
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
	e.resume()
	e.begin = begin
	e.outputs.resume(shown, printed)
	if begin != nil {
		e.state.Apply(job.Resumed{})
	}
	if e.confirmation.accounts != nil {
		e.confirmation.accounts.Speakers = nil // earlier ones are unknown
	}
	e.deadlines.reconnect = time.After(j.req.Away)
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

// handle handles the messages that have another meaning, or none, in a resumed job. It reports
// whether m was such a message.
func (a *resumption) handle(l *link, m *jobpb.FromPeer) (meant bool, err error) {
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Agreed:
		return true, l.reported.changes.add(b.Agreed)
	case *jobpb.FromPeer_Outside:
		l.reported.changes.outside = true
	case *jobpb.FromPeer_Prepared, *jobpb.FromPeer_Started,
		*jobpb.FromPeer_Suspect, *jobpb.FromPeer_Paths:
	default:
		return false, nil
	}
	return true, nil
}

// overdueFailed is how long peers may take to reconnect if all their processes have failed
// according to the other peers. Most of them no longer exist.
const overdueFailed = 2 * time.Second

// dropLatePeers continues without the peers that have not reconnected in time.
func (a *resumption) dropLatePeers() {
	if a.waits == forAll {
		a.waits, a.deadlines.peers = forParts, time.After(a.j.s.waits.reconnect)
	} else {
		a.waits, a.due = forNone, true
	}
}

// agreeWithin is how long the view group may take to agree on a change: many times what a majority
// needs.
const agreeWithin = 30 * time.Second

// catchUp applies the agreed changes once the messages that led to them have arrived, and gives up
// the peers that the job no longer needs.
func (a *resumption) catchUp() (r *job.Result) {
	present, away := 0, 0
	isPart := func(l *link) bool { return l.err == nil && l.recruit == nil }
	agreed := a.state.View()
	if a.waits != forAll {
		agreed = a.after(agreed)
	}
	for _, l := range a.peers.links {
		switch {
		case !isPart(l):
		case l.session.disconnected && a.waits != forAll && !slices.ContainsFunc(l.processes, agreed.Has): // it will not reconnect
		case isDisconnected(l):
			away++
		default:
			present++
		}
	}
	switch {
	case present > 0:
		if a.deadlines.peers == nil && a.waits != forNone {
			a.deadlines.peers = time.After(overdueFailed)
		}
	case !slices.ContainsFunc(a.peers.links, isPart):
		if !a.state.Over() { // otherwise the code that needs the peer reports it
			return a.nothingLeft()
		}
	case a.deadlines.reconnect == nil:
		a.deadlines.reconnect = time.After(a.j.req.Away)
	}
	if away == 0 || a.waits == forNone {
		r = a.takeChanges()
	}
	if a.waits == forNone && r == nil {
		r = a.loseLate(present)
	}
	if present > 0 {
		a.limit()
	}
	a.caughtUp = present > 0 && (away == 0 || a.waits == forNone)
	return r
}

// limit limits the time that the view group may take for requested changes.
func (a *resumption) limit() {
	if waits := len(a.state.Asked()) > 0; !waits {
		a.deadlines.reconnect, a.asked = nil, false
	} else if !a.asked { // without a majority, no change is agreed on
		a.deadlines.reconnect, a.asked = time.After(agreeWithin), true
	}
}

// takeChanges applies the changes that the connected peers report.
func (a *resumption) takeChanges() *job.Result {
	for {
		v := a.state.View()
		if r := a.rejectImpossible(v); r != nil {
			return r
		}
		voices := a.nextChanges(v)
		c, ok, err := decide(voices)
		if err != nil {
			return contradicted(voices)
		}
		if !ok {
			break
		}
		a.peers.addPlaceholder(c)
		if r := a.commit(c, reporters(voices, c)); r != nil {
			return r
		}
	}
	for _, l := range a.peers.links {
		// The peer may lead the view group, and only the leader can add a new peer.
		votes := a.j.req.heals() && time.Since(l.session.since) < a.j.s.waits.reconnect
		if l.err == nil && l.session.disconnected && !votes && !slices.ContainsFunc(l.processes, a.state.View().Has) {
			l.lose(errSilent)
		}
	}
	return nil
}

// loseLate gives up the disconnected peers that run no live process and have not reconnected in
// time. Until then, the output or the files of a finished process there may still be needed. The
// other peers detect the loss of a peer with a live process (submitter.go of package launch). present is the number of
// connected peers.
func (a *resumption) loseLate(present int) (r *job.Result) {
	late := false
	if present == 0 { // this machine may be cut off
		a.due, a.deadlines.peers = false, nil
		return nil
	}
	for _, l := range a.peers.links {
		switch {
		case l.err != nil || !l.session.disconnected || slices.ContainsFunc(l.processes, a.state.View().Live):
		case !a.due || time.Since(l.session.since) < a.j.s.waits.reconnect:
			late = true
		default:
			r = cmp.Or(r, a.lose(l, "it has not come back", errSilent))
		}
	}
	if a.due = false; late && a.deadlines.peers == nil {
		a.deadlines.peers = time.After(a.j.s.waits.reconnect)
	}
	return r
}

var errUnknown = errors.New("its peer is unknown")

// nothingLeft returns the result of a job that no peer runs any more.
func (a *resumption) nothingLeft() *job.Result {
	return &job.Result{
		Status:  job.StatusLost,
		Message: fmt.Sprintf("nothing of job %s is left at its peers: it was over, or they have waited for longer than %v (--away)", a.j.spec.ID, a.j.req.Away),
		Hint:    "start it again",
	}
}
