package submit

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

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
		return e.j.takenOver()
	case h.link.retired:
		if e.recruitment.handleRetired(h); h.link.err != nil {
			e.heal()
		}
		return nil
	case h.link.recruit != nil:
		return e.recruitment.handleRecruit(h)
	case errors.Is(h.err, errRefused):
		return e.lose(h.link, "the connection to it broke", h.err)
	case garbled(h.err):
		return e.protocolError(h.link, h.err)
	case h.err != nil && e.partition.active:
		return e.disconnect(h.link, h.err)
	case h.err != nil && e.peers.mayReconnect(h.link, h.err):
		e.recruitment.abandonAdditions(h.link)
		e.peers.reconnect(h.link, h.err)
		return nil
	case h.err != nil:
		return e.lose(h.link, "the connection to it broke", h.err)
	}
	if reason := h.msg.GetOutside().GetReason(); reason != "" {
		return e.lose(h.link, plain(reason), errOutside)
	}
	if e.concernsEarlierProcess(h) {
		return nil
	}
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Staging: // it only shows that the peer is connected, as receive has noted
		h.link.handleStaging()
		return nil
	case *jobpb.FromPeer_Suspect:
		e.suspect(b.Suspect)
		return nil
	case *jobpb.FromPeer_Paths:
		return e.protocolError(h.link, e.routing.add(h.link, b.Paths))
	case *jobpb.FromPeer_Paused:
		if note := h.link.reported.pause(h.link.peer, b.Paused); note != "" {
			e.j.warn(note)
		}
		return nil
	}
	p, ok := processOf(h.msg)
	if meant, r := e.recruitment.handleAddition(h, p); meant {
		return r
	}
	if !ok || e.peers.runsOn[p] != h.link {
		return e.protocolError(h.link, fmt.Errorf("unexpected %T of process %v", h.msg.Body, p))
	}
	if h.msg.GetOutput() == nil && e.state.View().State(p) == view.Vacant {
		if err := e.toJoin.add(p, h); err != nil {
			return e.protocolError(h.link, fmt.Errorf("about %v, which has not joined: %w", p, err))
		}
		return nil
	}
	return e.handleReport(p, h)
}

// concernsEarlierProcess reports whether a peer repeats a message that concerned an earlier process
// of the submitter only.
func (e *execution) concernsEarlierProcess(h received) bool {
	if h.msg == nil || h.link.session.received > h.link.session.earlier {
		return false
	}
	switch h.msg.Body.(type) {
	case *jobpb.FromPeer_Prepared, *jobpb.FromPeer_Started, *jobpb.FromPeer_Suspect, *jobpb.FromPeer_Paths:
		return true
	}
	return false
}

// handleReport handles a peer's message about its process p.
func (e *execution) handleReport(p view.Process, h received) *job.Result {
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		e.peers.recordKey(p, b.Initialized.Key)
		if e.entry != nil {
			e.entry.Initialized(p, time.Now())
		}
		return e.apply(e.state.Apply(job.Initialized{Process: p}))
	case *jobpb.FromPeer_Output:
		return e.output(h, p)
	case *jobpb.FromPeer_Exited:
		return e.exited(h.link, p, exitOf(b.Exited, h.link.peer))
	case *jobpb.FromPeer_Aborted:
		return e.apply(e.state.Apply(job.Aborted{Process: p, Code: int(b.Aborted.Code), Reason: plain(b.Aborted.Reason), Host: e.peers.peerOf(p)}))
	case *jobpb.FromPeer_Collected:
		return e.protocolError(h.link, e.collector.add(p, b.Collected))
	case *jobpb.FromPeer_Ahead:
		return e.apply(e.state.Apply(job.Ahead{Process: p}))
	case *jobpb.FromPeer_Stalled:
		if e.partition.active || !e.views.inTouch() {
			return nil
		}
		var r *job.Result
		for _, q := range e.detection.unresponsive(p, e.state.View(), e.peers) {
			r = cmp.Or(r, e.apply(e.state.Apply(job.Unresponsive{Process: q})))
		}
		return r
	case *jobpb.FromPeer_UpToDate:
		return e.apply(e.state.Apply(job.UpToDate{Process: p, Since: b.UpToDate.GetSince(), Term: b.UpToDate.GetTerm()}))
	case *jobpb.FromPeer_Leaving:
		return e.apply(e.state.Apply(job.Leaves{Process: p}))
	case *jobpb.FromPeer_Diverged:
		d, early, err := e.earlyReports.take(p, b.Diverged, e.state.View())
		if err != nil || early {
			return e.protocolError(h.link, err)
		}
		return e.disputed(p, d)
	case *jobpb.FromPeer_Account:
		r, err := e.confirmation.add(p, b.Account)
		return cmp.Or(r, e.protocolError(h.link, err))
	case *jobpb.FromPeer_Healed:
		r, ended := e.recruitment.healed(p, b.Healed)
		if ended {
			e.heal() // the next loss in this rank begins a new outage
		}
		return r
	case *jobpb.FromPeer_Unkept:
		if b.Unkept.Lapsed {
			return e.apply(e.state.Apply(job.Lapsed{Process: p, Why: plain(b.Unkept.Reason)}))
		}
		return e.apply(e.state.Apply(job.Unkept{Process: p, Why: plain(b.Unkept.Reason)}))
	}
	return nil
}

// exited handles the end of a process. The report must not contradict earlier messages: the peer
// reports a call of mpj.Init before the exit, and mpj.Init returns only once the job has begun.
func (e *execution) exited(l *link, p view.Process, x job.Exit) *job.Result {
	if e.state.View().Live(p) && (x.Initialized && !e.state.Called(p) || x.Finalized && !e.state.Begun()) {
		return e.protocolError(l, fmt.Errorf("the reported end of process %v contradicts earlier messages about mpj.Init", p))
	}
	if e.entry != nil && x.Good() {
		e.entry.Arrived(p, time.Now())
	}
	return e.apply(e.state.Apply(job.Exited{Process: p, Exit: x}))
}

// processOf returns the process that a message is about.
func processOf(m *jobpb.FromPeer) (p view.Process, ok bool) {
	r := m.ProtoReflect()
	body := r.WhichOneof(r.Descriptor().Oneofs().ByName("body"))
	if body == nil {
		return p, false
	}
	about, ok := r.Get(body).Message().Interface().(interface{ GetProcess() *jobpb.Process })
	if ok {
		p = about.GetProcess().View()
	}
	return p, ok
}

// output passes output of process p to the user.
func (e *execution) output(h received, p view.Process) *job.Result {
	event, skipped, err := e.outputs.add(h, p)
	if skipped > 0 {
		m := h.msg.GetOutput()
		e.j.warn(skippedNote(p, job.Stream(m.Stream), m.First, skipped, e.peers.peerOf(p)))
	}
	if event != nil {
		err = e.j.emitOutput(*event)
	}
	return cmp.Or(e.protocolError(h.link, err), e.drained(e.outputs.drained(p.Rank)))
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

// shown handles output that has reached the user.
func (e *execution) shown() *job.Result {
	return e.drained(e.outputs.shown(e.j.events.takeShown()))
}

// drained handles that the user has all output of the given processes, which have ended.
func (e *execution) drained(all []view.Process) *job.Result {
	for _, p := range all {
		if r := e.apply(e.state.Apply(job.Drained{Process: p})); r != nil {
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

// apply carries out the effects of an event. Without a view group, proposed changes take effect at
// once, because the submitter is the only voter.
func (e *execution) apply(s job.Effects) *job.Result {
	r := e.carryOut(s)
	if s.Joined != nil {
		r = cmp.Or(r, e.joined(*s.Joined))
		for _, d := range e.earlyReports.about(*s.Joined, e.state.View()) {
			r = cmp.Or(r, e.disputed(d.by, d.Divergence))
		}
	}
	for _, p := range s.Outvoted {
		if l := e.peers.runsOn[p]; l != nil {
			e.recruitment.avoided.Distrust(l.peer)
		}
	}
	for _, c := range s.Propose {
		if !e.views.propose(c) {
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
		e.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(*s.View)}})
	}
	if s.Begin {
		e.begin = &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: e.peers.keys, Places: e.peers.places()}}}
		if err := e.j.keeper.writeBegin(e.begin.GetBegin()); err != nil && !e.j.outdateRecord(err) {
			e.j.warn(err.Error())
		}
		e.peers.reopens = true
		e.peers.broadcast(e.begin)
		for _, l := range e.peers.links {
			if !l.endpoints.Known(e.j.s.cfg.Host, l.peer) { // not known since staging
				l.probeAddresses(e.j.s.cfg.Host)
			}
		}
		e.tellKept()
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

// tellKept tells the user that another process can resume the job, if it can.
func (e *execution) tellKept() {
	k := e.j.keeper
	if k == nil || k.outdated || e.views.group == nil {
		return
	}
	text := fmt.Sprintf("if this p2prun is killed, p2prun --attach %.8s resumes the job", e.j.spec.ID)
	if k.told { // the event comes once
		e.j.warn(text)
		return
	}
	k.told = true
	e.j.emit(Event{Kind: KeptEvent, Text: text})
}

// joined lets a process that is now in the view leave mpj.Init, unless it was lost meanwhile.
func (e *execution) joined(p view.Process) *job.Result {
	l := e.peers.runsOn[p]
	l.recruit = nil
	delete(l.added, p)
	if errors.Is(l.err, errUnknown) { // another process of the submitter let it join
		e.j.warn(fmt.Sprintf("rank %d replica %d joined after the start of the job, on a peer that is not recorded: its output is not shown, and lost replicas are not replaced", p.Rank, p.Replica))
		return nil
	}
	if l.err != nil {
		return e.lose(l, "it was lost while it joined", l.err)
	}
	l.send(e.outputs.emitted(p.Rank))
	if e.begin != nil {
		l.send(e.begin)
		l.probeAddresses(e.j.s.cfg.Host)
	}
	var r *job.Result
	for _, h := range e.toJoin.take(p) {
		r = cmp.Or(r, e.handle(h))
	}
	return r
}

// disputed handles process p's report of a divergence.
func (e *execution) disputed(p view.Process, d protection.Divergence) *job.Result {
	return e.apply(e.state.Apply(job.Diverged{Process: p, Divergence: d, Text: evidence(e.peers, p, d)}))
}
