package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A job that another process of the submitter has begun, which was killed, is gone on with
// here:
//
//	home                    this process                         peers
//	 |-- spec, peers, shown -->|                                   |  alone.go: the job goes on
//	 |                         |-- Resume(job, 0, anew) ---------->|
//	 |                         |<-- all that it has said, from the beginning
//	 |                         |<-- Agreed: each change of the view  |  testimony.go: whom to believe
//	 |                         |<-- output not acknowledged -------|
//	 |<-- shown ---------------|-- Emitted, Collect, Propose ----->|
//
// So the watch gets to know all that the other one knew, in the same order for each peer. The
// changes are taken once each peer is back, or late: they follow from what the peers say.
// This process is not one of those who agree on views, for it does not have their log: it
// makes none, tells none, and asks for changes through the peers, which find out by
// themselves who is silent. Processes that have come later than the job began are known like
// all others; what is said of one waits until it is in the view here.
//
// Once it is caught up it replaces replicas that are lost, as its predecessor did (recruit.go),
// with what that has kept for them (work.go). It asks all that it reaches of those who agree on
// views to take the new peer in (Introduce); whoever leads does, once. The number of that peer is
// kept before anybody hears of it, and a process that is kept and not in the view is let in before
// another one is looked for: so no number and no process is given to two peers. (The process that
// has begun the job goes on replacing though it cannot keep that; see ARCHITECTURE.)

// adopted is what is known of a job that another process has begun.
type adopted struct {
	hurried   bool // those whose processes have all failed are waited for no more
	waited    bool // nor is anybody who is not back
	due       bool // those are to be given up that are late and have nothing to run
	asked     bool // for a change that has yet to be agreed on
	caughtUp  bool // with what the peers that are here know
	collected map[view.Process]*jobpb.Collected
}

// Attach goes on with a job that is kept, as Run would have. It ends likewise: when ctx ends
// the job is cancelled. The result has StatusUsage if there is no such job, or another
// process follows it.
func (s *Submitter) Attach(ctx context.Context, id string, sink Sink) Result {
	k, err := s.reopen(id)
	if err != nil {
		return refuse(sink, Result{Status: StatusUsage, Message: err.Error()})
	}
	defer k.close()
	shown, printed, err := k.positions()
	begin, wrong := k.begin()
	if err = errors.Join(err, wrong); err != nil {
		return refuse(sink, Result{Status: StatusUsage, Message: err.Error()})
	}
	if err := checkOutputDir(k.kept.Request); err != nil && ctx.Err() == nil && k.kept.Result == nil {
		return refuse(sink, Result{
			Status: StatusUsage, Message: err.Error(),
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
	j.printer = newPrinter(id, sink, func(err error) { cancel(fmt.Errorf("nobody listens: %w", err)) }, k, s.cfg.Resident)
	defer j.printer.close()
	e := newAdopted(j, shown, printed, begin)
	e.until, _ = ctx.Deadline()
	if e.healing != nil && !e.numbered() {
		lacks = errors.New("not all that their peers have to know was kept")
	}
	if lacks != nil && k.kept.Result == nil {
		j.warn(fmt.Sprintf("replicas that are lost from now on are not replaced: %v", lacks))
	}
	if over := k.kept.Result; over != nil { // not all peers may have heard
		s.setOver(j.spec.ID)
		e.stop(cmp.Or(over.Message, "done"))
		e.close()
		j.printRest(shown)
		return j.conclude(*over)
	}
	return j.conclude(e.finish(ctx))
}

// runAgain returns the run of a kept job. The error says what it lacks to replace what is lost.
func (s *Submitter) runAgain(k *keeper) (j *run, lacks error) {
	req := k.kept.Request
	req.Explain = false
	j = &run{
		s: s, req: req, keeper: k, excluded: make(map[p2ppeer.ID]bool),
		spec: jobspec.Spec{ID: k.kept.Job, Submitter: s.cfg.Host.ID(), N: req.N, R: req.R, Name: req.Name},
		log:  s.cfg.Log.With().Str("job", k.kept.Job).Logger(),
	}
	j.status = Status{Job: k.kept.Job, Name: req.Name, N: req.N, R: req.R, Since: k.kept.Since}
	if req.Heal {
		lacks = k.readWork(j)
		j.req.Heal = lacks == nil
	}
	return j, lacks
}

// newAdopted returns the execution of a job on the peers that it was kept with. Streams to
// them are being made.
func newAdopted(j *run, shown [][2]uint64, printed []transcript, begin *jobpb.ToPeer) *execution {
	r := &reservation.Reservation{Job: j.spec.ID}
	for _, p := range j.keeper.kept.Peers {
		r.Placements = append(r.Placements, reservation.Placement{Peer: p.Peer, Processes: p.Processes, Machine: p.SlotsOn})
		j.s.cfg.Host.Peerstore().AddAddrs(p.Peer, readAddrs(p.Addrs), peerstore.PermanentAddrTTL)
	}
	e := newExecution(j, r)
	e.adopted = &adopted{collected: make(map[view.Process]*jobpb.Collected)}
	e.emission, e.begin, e.watch.begun = goOn(shown), begin, begin != nil
	for rank := range shown {
		e.flows[rank] = [2]flow{{shown: shown[rank][0]}, {shown: shown[rank][1]}}
	}
	if e.accounts != nil {
		e.printed = printed
		e.accounts.speakers = nil // those before the attachment are unknown
	}
	e.patience = time.After(j.req.Away)
	latest := make(map[p2ppeer.ID]*link)
	for i, l := range e.links {
		kept := j.keeper.kept.Peers[i]
		l.redeemed, l.machine, l.number, l.keys = true, kept.Machine, kept.Number, kept.keysOf()
		if before := latest[l.peer]; before != nil { // it has come again since
			before.lose(errRetired)
		}
		latest[l.peer] = l
	}
	for _, l := range e.links {
		e.strand(l, nil)
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

// hear takes what a peer says that means something else, or nothing, to one that has not
// begun the job, and reports whether it was that.
func (a *adopted) hear(l *link, m *jobpb.FromPeer) (meant bool, err error) {
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Agreed:
		return true, l.testimony.add(b.Agreed)
	case *jobpb.FromPeer_Outside:
		l.testimony.outside = true
	case *jobpb.FromPeer_Prepared, *jobpb.FromPeer_Started,
		*jobpb.FromPeer_Suspect, *jobpb.FromPeer_Paths:
	default:
		return false, nil
	}
	return true, nil
}

// putOff keeps what is said of a process that has yet to join, as far as changes have been
// taken.
func (e *execution) putOff(h heard, p view.Process) *Result {
	putOff, err := e.toJoin[p].add(h)
	if err != nil {
		return e.breach(h.link, fmt.Errorf("about %v, which has not joined: %w", p, err))
	}
	e.toJoin[p] = putOff
	return nil
}

// hearPutOff takes what has been kept of a process that has joined.
func (e *execution) hearPutOff(p view.Process) (r *Result) {
	putOff := e.toJoin[p]
	delete(e.toJoin, p)
	for _, h := range putOff.said {
		r = cmp.Or(r, e.hear(h))
	}
	return r
}

// overdueFailed is how long peers have to come back whose processes have failed, as the others
// say: most of them are gone.
const overdueFailed = 2 * time.Second

// late goes on without those that have not come back in time.
func (e *execution) late() *Result {
	switch a := e.adopted; {
	case a == nil && e.overdue != nil: // this process did not run meanwhile: they have more time
	case a == nil:
		return e.loseAway("it has not come back")
	case a.hurried:
		a.waited, a.due = true, true
	default:
		a.hurried, e.overdue = true, time.After(e.j.s.waits.back)
	}
	return nil
}

// agreeWithin is how long those who agree on views have for a change: many times what they
// need when they are a majority.
const agreeWithin = 30 * time.Second

// catchUp takes the changes that have been agreed on, when it is known what they follow
// from, and lets go of the peers that the job does not need any more.
func (e *execution) catchUp() (r *Result) {
	present, away := 0, 0
	isPart := func(l *link) bool { return l.err == nil && l.recruit == nil }
	agreed := e.watch.View()
	if e.adopted.hurried {
		agreed = e.after(agreed)
	}
	for _, l := range e.links {
		switch {
		case !isPart(l):
		case l.away && e.adopted.hurried && !slices.ContainsFunc(l.processes, agreed.Has): // it will not be back
		case isAway(l):
			away++
		default:
			present++
		}
	}
	switch {
	case present > 0:
		if e.overdue == nil && !e.adopted.waited {
			e.overdue = time.After(overdueFailed)
		}
	case !slices.ContainsFunc(e.links, isPart):
		if !e.watch.over { // else what is missing is said by who misses it
			return e.nothingLeft()
		}
	case e.patience == nil:
		e.patience = time.After(e.j.req.Away)
	}
	if away == 0 || e.adopted.waited {
		r = e.takeChanges()
	}
	if e.adopted.waited && r == nil {
		r = e.loseLate(present)
	}
	if present > 0 {
		e.limit()
	}
	e.adopted.caughtUp = present > 0 && (away == 0 || e.adopted.waited)
	return r
}

// numbered reports whether the numbers of all peers among those who agree on views are known, so
// that one that comes can have another one.
func (e *execution) numbered() bool {
	for _, l := range e.runsOn {
		if l.number == 0 && l.peer != e.j.s.cfg.Host.ID() {
			return false
		}
	}
	return true
}

// letIn asks for process p to join, which runs on l, where that is to be agreed on as s says.
func (e *execution) letIn(l *link, p view.Process, s step) *Result {
	if l.number > 0 {
		e.ask(e.introduceMessage(l, p))
	}
	return e.apply(s)
}

// vouch repeats to a peer, which may not have heard it, that p is to join.
func (e *execution) vouch(to *link, p view.Process) {
	if l := e.runsOn[p]; l.number > 0 {
		to.say(e.introduceMessage(l, p))
	}
	to.say(e.proposeMessage(viewgroup.Change{Process: p, To: view.Live}))
}

// introduceMessage asks for the peer of l, where p runs, to be taken in.
func (e *execution) introduceMessage(l *link, p view.Process) *jobpb.ToPeer {
	n := e.newcomer(l, p)
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Introduce{Introduce: &jobpb.Introduce{Number: uint32(l.number), Row: n.Row, Signature: n.Signature}}}
}

// proposeMessage asks for a change, signed by the submitter's peer, whose word counts although
// this process has no part in the group.
func (e *execution) proposeMessage(c viewgroup.Change) *jobpb.ToPeer {
	m := jobpb.FromChange(c, 0)
	p, err := viewgroup.Sign(e.key(), e.j.spec.ID, 0, c)
	if err != nil { // the peers refuse it, and the user hears why nothing is agreed on
		e.j.warn(err.Error())
	}
	m.Signature = p.Signature
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Propose{Propose: m}}
}

// key returns the key of the submitter's peer.
func (e *execution) key() crypto.PrivKey {
	h := e.j.s.cfg.Host
	return h.Peerstore().PrivKey(h.ID())
}

// ask says something to the peers that agree on views, in which this process has no part.
func (e *execution) ask(m *jobpb.ToPeer) {
	for _, l := range e.links {
		if !l.retired && (l.recruit == nil || l.recruit.phase == recruitJoining) {
			l.say(m)
		}
	}
}

// limit bounds the time that those who agree on views have for what was asked for.
func (e *execution) limit() {
	if waits := len(e.watch.Asked()) > 0; !waits {
		e.patience, e.adopted.asked = nil, false
	} else if !e.adopted.asked { // without a majority it is in vain
		e.patience, e.adopted.asked = time.After(agreeWithin), true
	}
}

// takeChanges takes what has been agreed on.
func (e *execution) takeChanges() *Result {
	for {
		v := e.watch.View()
		if r := e.refute(v); r != nil {
			return r
		}
		voices := e.voices(v)
		c, ok, err := decide(voices)
		if err != nil {
			return contradicted(voices)
		}
		if !ok {
			break
		}
		e.expect(c)
		if r := e.commit(c, naming(voices, c)); r != nil {
			return r
		}
	}
	for _, l := range e.links {
		// It may lead those who agree on views, and only who leads can take a new peer in.
		votes := e.healing != nil && time.Since(l.awayAt) < e.j.s.waits.back
		if l.err == nil && l.away && !votes && !slices.ContainsFunc(l.processes, e.watch.View().Has) {
			l.lose(errSilent)
		}
	}
	return nil
}

// loseLate gives up those that have not come back in time and have nothing to run, when
// it is known how many others are here: they may be wanted yet for the output or the files
// of a process that has finished. About one that runs, the others find out (alone.go).
func (e *execution) loseLate(present int) (r *Result) {
	a, late := e.adopted, false
	if present == 0 { // it may be this machine that is cut off
		a.due, e.overdue = false, nil
		return nil
	}
	for _, l := range e.links {
		switch {
		case l.err != nil || !l.away || slices.ContainsFunc(l.processes, e.watch.View().Live):
		case !a.due || time.Since(l.awayAt) < e.j.s.waits.back:
			late = true
		default:
			r = cmp.Or(r, e.lose(l, "it has not come back", errSilent))
		}
	}
	if a.due = false; late && e.overdue == nil {
		e.overdue = time.After(e.j.s.waits.back)
	}
	return r
}

var errUnknown = errors.New("its peer is not known here")

// expect has a place for a process that joins in a change, and the peer of which could not be
// kept. It goes on: it may be all that is left of its rank.
func (e *execution) expect(c viewgroup.Change) {
	if _, known := e.runsOn[c.Process]; known || !c.Joins() {
		return
	}
	l := newLink(reservation.Placement{}, c.Process)
	l.err, l.redeemed = errUnknown, true
	l.cancel()
	e.runsOn[c.Process] = l
}

// nothingLeft is the result of a job of which no peer has a part any more.
func (e *execution) nothingLeft() *Result {
	return &Result{
		Status:  StatusLost,
		Message: fmt.Sprintf("nothing of job %s is left at its peers: it was over, or they have waited for longer than %v as --away says", e.j.spec.ID, e.j.req.Away),
		Hint:    "start it again",
	}
}
