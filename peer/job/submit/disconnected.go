package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// What a submitter does that is behind the view group, which may continue without it:
//
//	in touch --- CutOff ---> partitioned: the submitter reopens the streams to silent peers until
//	   ^                     |  each peer answers, and holds the changes agreed on meanwhile
//	   |                     |
//	   +---- rejoin <--------+  in touch, and each peer has reconnected or is lost: the messages
//	         regroup         |  that led to the changes have arrived, so the changes are applied
//	                         |
//	                         +-- reconnectTimedOut, after Request.Away: the job ends
//
// A submitter whose process did not run for a while has been cut off too, and notices that by its
// clock (detectSleep). A new process of the submitter begins as a partitioned one (resume.go). A
// peer that reconnects repeats the messages that the submitter has not received, and the submitter
// repeats what the peer may have missed (package launch, submitter.go). Meanwhile the submitter
// decides nothing (V2).
//
// If each rank has finished, no further change is needed. The submitter then rejoins without being in
// touch, once a peer has reconnected: the majority may have left after the end.

// MaxAway limits how long a job continues while its peers and the submitter are disconnected.
const MaxAway = time.Hour

// A partition is the state of a submitter that may be behind the majority of the view group.
type partition struct {
	active  bool                  // the majority may continue without the submitter
	since   time.Time             // beginning of the partition; zero: an earlier process was cut off
	patient bool                  // peers with live processes get more time: this process may not have found them yet
	silent  []*link               // to peers that the detector failed while out of touch
	changes []viewgroup.Committed // agreed on while partitioned, not applied yet
}

// deferFailure defers the failure of a peer, since this machine may be the one that is cut off. It
// reports whether it is the first one.
func (p *partition) deferFailure(l *link) (first bool) {
	p.silent = append(p.silent, l)
	return len(p.silent) == 1
}

// takeSilent returns the peers whose failure was deferred.
func (p *partition) takeSilent() []*link {
	silent := p.silent
	p.silent = nil
	return silent
}

// hold returns the changes to apply now: none while partitioned, since the messages that led to them
// have not arrived yet.
func (p *partition) hold(changes []viewgroup.Committed) []viewgroup.Committed {
	if !p.active {
		return changes
	}
	p.changes = append(p.changes, changes...)
	return nil
}

// takeHeld removes and returns the held changes.
func (p *partition) takeHeld() []viewgroup.Committed {
	changes := p.changes
	p.changes = nil
	return changes
}

// viewAfter returns the view that results from v and the held changes.
func (p *partition) viewAfter(v view.View) view.View {
	for _, c := range p.changes {
		v, _ = c.Change.Apply(v)
	}
	return v
}

// deadlines are the deadlines of a job. A nil deadline is not set.
type deadlines struct {
	reconnect <-chan time.Time // for the submitter to reconnect
	peers     <-chan time.Time // for the other peers to reconnect
	exits     <-chan time.Time // for reports on finished processes; see loseUnreported
	contact   <-chan time.Time // for a process that has resumed the job to be in touch; see warnOutOfTouch
}

// peersMayContinue reports whether the job's peers may continue without the submitter: the job has begun, or
// they wait for a new process of the submitter, and they have a majority.
func (e *execution) peersMayContinue() bool {
	return (e.begin != nil || e.j.resumed) && e.j.req.Away != 0 && e.views.majorityElsewhere()
}

const (
	// pulsePeriod is how often a job checks that its process runs.
	pulsePeriod = time.Second
	// A process that did not run for asleepFor or for asleepPeriods periods of the detector,
	// whichever is longer, has been as good as cut off, since its peers missed it. The tolerated
	// hang is added to that.
	asleepFor, asleepPeriods = 10 * time.Second, 10
)

// detectSleep detects that this process did not run for a while, because it was stopped or its
// machine was suspended. After a long pause the submitter has been cut off and knows nothing about
// its peers. Even a broken connection does not prove that its peer has ended. So detectSleep
// reopens all streams.
func (e *execution) detectSleep() (r *job.Result) {
	asleep := uptime() - e.lastUptime
	e.lastUptime += asleep
	if cfg := e.j.s.cfg; asleep < max(asleepFor, asleepPeriods*cfg.Period)+cfg.Hang || !e.peersMayContinue() {
		return nil
	}
	if !e.partition.active {
		r = e.beginPartition(fmt.Sprintf("this process did not run for %v, and the job's peers may continue without it", asleep.Round(time.Second)))
	}
	for _, l := range e.peers.links {
		r = cmp.Or(r, e.disconnect(l, nil))
	}
	e.deadlines.peers = time.After(e.j.s.waits.reconnect)
	return r
}

// beginPartition starts the reconnect deadline and disconnects the silent peers.
func (e *execution) beginPartition(why string) (r *job.Result) {
	e.partition.active, e.partition.since = true, time.Now()
	e.deadlines.reconnect = time.After(e.j.req.Away)
	e.j.warn(fmt.Sprintf("%s; waiting up to %v to reconnect", why, e.j.req.Away))
	for _, l := range e.partition.takeSilent() {
		r = cmp.Or(r, e.disconnect(l, nil))
	}
	return r
}

// disconnect disconnects a peer that is silent, or whose stream ended with err, and starts to reopen
// the stream. A recruit that has not joined is lost: it would wait for the submitter to let it
// begin.
func (e *execution) disconnect(l *link, err error) *job.Result {
	switch {
	case l.err != nil || l.session.disconnected || l.retired:
		return nil
	case l.recruit != nil:
		return e.loseSilentPeer(l)
	}
	e.recruitment.abandonAdditions(l)
	e.peers.reopen(l, err)
	return nil
}

// resumed continues with a peer whose stream was reopened.
func (e *execution) resumed(h received) *job.Result {
	l := h.link
	if h.late() {
		return nil
	}
	e.peers.switchStream(h)
	answer := h.msg.GetResumed()
	if answer == nil {
		return e.protocolError(l, unexpected(h.msg))
	}
	if answer.Error != "" {
		return e.lose(l, "its part of the job has ended", errors.New(plain(answer.Error)))
	}
	if e.j.resumed && l.session.received == 0 {
		l.session.earlier = answer.Said
	}
	l.session.expected = answer.Said
	for _, p := range l.processes {
		delete(e.outputs.early, p) // the peer repeats it
	}
	l.probeAddresses(e.j.s.cfg.Host)
	e.resend(l)
	return nil
}

// resend repeats the messages that a peer may have missed. Repeated messages have no effect.
func (e *execution) resend(l *link) {
	v := e.state.View()
	for p, key := range l.dropped {
		l.send(dropMessage(p, key))
	}
	e.detection.repeatJoin(l)
	if e.begin != nil && slices.ContainsFunc(l.processes, v.Has) { // a process that has yet to join waits for its view
		l.send(e.begin)
	}
	for p, on := range e.peers.runsOn {
		if p.Replica >= e.j.req.R && (v.Has(p) || e.peers.entered(p, v)) {
			l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: e.peers.row(on, p)}})
		}
	}
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}})
	for _, p := range l.processes {
		l.send(e.outputs.emitted(p.Rank))
		e.collector.askAgain(p)
	}
}

// isDisconnected reports whether the peer is disconnected, or has yet to repeat the messages that the
// submitter missed.
func isDisconnected(l *link) bool {
	return l.err == nil && (l.session.disconnected || l.session.received < l.session.expected)
}

// awaits reports whether a partitioned submitter waits for a peer to reconnect and to repeat its
// messages. v is the view that results from the held changes. If all processes of a disconnected peer
// have failed in v, its part of the job has ended, unless the peer itself has requested that: then it
// knows how they ended.
func (p *partition) awaits(l *link, v view.View) bool {
	return isDisconnected(l) && !(l.session.disconnected && l.allFailed(v) && !p.knowsEnd(l))
}

// knowsEnd reports whether a held change fails a process at the request of its own peer.
func (p *partition) knowsEnd(l *link) bool {
	return slices.ContainsFunc(p.changes, func(c viewgroup.Committed) bool {
		return c.Change.To == view.Failed && slices.Contains(l.processes, c.Change.Process) && slices.Contains(c.By, l.number)
	})
}

// rejoin resumes normal operation once the views are certain, and each other peer has reconnected or
// is lost.
func (e *execution) rejoin() (r *job.Result) {
	v := e.partition.viewAfter(e.state.View())
	if !e.views.inTouch() && !(e.state.Decided(v) && e.peers.backSince(e.partition.since)) {
		e.deadlines.peers = nil // this machine may still be cut off
		return nil
	}
	if slices.ContainsFunc(e.peers.links, func(l *link) bool { return e.partition.awaits(l, v) }) {
		if e.deadlines.peers == nil {
			e.deadlines.peers = time.After(e.j.s.waits.reconnect)
		}
		return nil
	}
	e.deadlines.reconnect, e.deadlines.peers, e.deadlines.contact = nil, nil, nil
	r = cmp.Or(e.applyHeld(), e.loseDisconnected("its part of the job has ended"))
	e.j.warn("reconnected to the job's peers")
	e.partition.active, e.views.behind = false, false
	e.regroup()
	e.heal()
	return r
}

// applyHeld applies the held changes.
func (e *execution) applyHeld() (r *job.Result) {
	for _, c := range e.partition.takeHeld() {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	return r
}

// dropLatePeers continues without the peers that have not reconnected in time. If this process did
// not run meanwhile, detectSleep has set another deadline. A process that has resumed the job may have
// to look up the addresses of peers, which the view group may reach (V3).
func (e *execution) dropLatePeers() (r *job.Result) {
	if e.deadlines.peers != nil {
		return nil
	}
	const why = "it has not come back"
	if !e.partition.patient {
		return e.loseDisconnected(why)
	}
	e.partition.patient = false
	v := e.partition.viewAfter(e.state.View())
	for _, l := range e.peers.links {
		if isDisconnected(l) && !slices.ContainsFunc(l.processes, v.Live) {
			r = cmp.Or(r, e.lose(l, why, errSilent))
		}
	}
	e.deadlines.peers = time.After(e.j.s.waits.silence)
	return r
}

// loseDisconnected gives up the disconnected peers.
func (e *execution) loseDisconnected(why string) (r *job.Result) {
	for _, l := range e.peers.links {
		if isDisconnected(l) {
			r = cmp.Or(r, e.lose(l, why, errSilent))
		}
	}
	return r
}

// reconnectTimedOut ends the job after the reconnect deadline, unless no further change is needed.
func (e *execution) reconnectTimedOut() *job.Result {
	e.deadlines.contact = nil
	r := cmp.Or(e.applyHeld(), e.loseDisconnected("it has been silent for too long"))
	if r == nil && !e.state.Decided(e.state.View()) {
		r = e.apply(e.state.Apply(job.CutOff{}))
	}
	return r
}

// warnOutOfTouch tells the user which peers a process waits for that has resumed the job long ago, and until when.
func (e *execution) warnOutOfTouch() {
	var silent []string
	for _, l := range e.peers.links {
		if l.err == nil && l.session.disconnected {
			silent = append(silent, short(l.peer))
		}
	}
	var why string
	switch slices.Sort(silent); {
	case len(silent) == 0:
		why = "the job's peers answer, but this process has no contact with their majority"
	case len(silent) == len(e.peers.partners()):
		why = "none of the job's peers answers: " + strings.Join(silent, ", ")
	default:
		why = "peers of the job do not answer: " + strings.Join(silent, ", ")
	}
	until := time.Now().Add(e.j.req.Away - e.j.s.waits.contact)
	e.j.warn(fmt.Sprintf("%s; waiting until %s (--away); check the network of this machine, and that p2pboot runs on theirs; Ctrl-C cancels the job",
		why, until.Format(time.TimeOnly)))
}

// giveUp ends a resumed job that no peer runs any more, and a job that needs further changes of the
// view, which can never be agreed on.
func (e *execution) giveUp() *job.Result {
	apart := e.partition.active && !e.views.inTouch() || !e.partition.active && e.views.cutOff() && !e.state.Over()
	switch {
	case e.partition.active && e.j.resumed && !e.state.Over() && len(e.peers.partners()) == 0:
		return e.j.nothingLeft()
	case !apart || e.peersMayContinue() || e.state.Decided(e.partition.viewAfter(e.state.View())):
		return nil
	}
	return cmp.Or(e.loseDeferred(), e.reconnectTimedOut())
}

// loseDeferred gives up the peers whose failure was deferred.
func (e *execution) loseDeferred() (r *job.Result) {
	for _, l := range e.partition.takeSilent() {
		r = cmp.Or(r, e.loseSilentPeer(l))
	}
	return r
}

// takeAgreed handles the events of the view group.
func (e *execution) takeAgreed() (r *job.Result) {
	changes, contact, turned := e.views.events.take()
	for _, c := range e.partition.hold(changes) {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	e.views.behind = e.views.behind && !e.views.inTouch()
	switch err := e.views.group.Err(); {
	case !turned:
	case err != nil:
		return &job.Result{
			Status: job.StatusLost, Message: "the job's peers can no longer agree: " + err.Error(),
			Hint: "start it again without that peer (--not-peer)",
		}
	case e.partition.active:
	case contact == viewgroup.InTouch:
		e.regroup()
	case contact == viewgroup.CutOff && e.peersMayContinue():
		r = cmp.Or(r, e.beginPartition("cut off from the majority of the job's peers, which may continue without this machine"))
	case contact == viewgroup.CutOff: // giveUp ends the job if it needs the majority
		r = cmp.Or(r, e.loseDeferred())
	}
	return r
}

// applyAgreed applies a change that was agreed on. It records which peers requested a failure, for
// the user, unless a reason is known already.
func (e *execution) applyAgreed(c viewgroup.Committed) *job.Result {
	e.peers.addPlaceholder(c.Change)
	switch p := c.Change.Process; c.Change.To {
	case view.Failed:
		e.state.Apply(job.Accused{Process: p, Why: e.views.accusation(c)})
	case view.Finished:
		if e.state.Unexplained(p) && e.deadlines.exits == nil {
			e.deadlines.exits = time.After(e.j.s.waits.reconnect)
		}
	}
	return e.commit(c.Change, e.views.sources(c))
}

// commit applies a change of the view that the given peers requested.
func (e *execution) commit(c view.Change, by []p2ppeer.ID) *job.Result {
	s := e.state.Apply(job.Committed{Change: c})
	for _, id := range by {
		s.By = append(s.By, id.String())
	}
	if s.View != nil {
		e.j.log.Info().Stringer("change", c).Strs("by", s.By).Msg("view changed")
	}
	return e.apply(s)
}

// loseUnreported gives up the peers whose processes have finished in the view but whose end they
// have not reported within waits.reconnect. No other peer can report it, and the rank would wait
// for its output forever.
func (e *execution) loseUnreported() (r *job.Result) {
	e.deadlines.exits = nil
	for _, l := range e.peers.links {
		if l.err == nil && !isDisconnected(l) && slices.ContainsFunc(l.processes, e.state.Silent) {
			r = cmp.Or(r, e.protocolError(l, errors.New("its process has finished, but it has not reported the exit")))
		}
	}
	return r
}
