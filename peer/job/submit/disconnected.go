package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/multiformats/go-varint"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// What a submitter does that is cut off from the majority of the view group while the group may
// continue without it:
//
//	in touch --- CutOff ---> partitioned: the submitter reopens the streams to silent peers until
//	   ^                     |  each peer answers, and queues the changes agreed on meanwhile
//	   |                     |
//	   +---- rejoin <--------+  in touch, and each peer has reconnected or is lost: the messages
//	         regroup         |  that led to the changes have arrived, so the changes are applied
//	                         |
//	                         +-- reconnectTimedOut, after Request.Away: the job ends
//
// A submitter whose process did not run for a while has been cut off too, and notices that by its
// clock (detectSleep). A peer that reconnects repeats the messages that the submitter has not
// received, and the submitter repeats what the peer may have missed (package launch,
// controlstream.go). Meanwhile the submitter decides nothing (V2).

// MaxAway limits how long a job continues while its peers and the submitter are disconnected.
const MaxAway = time.Hour

const (
	// resumeTimeout limits one attempt to reopen a stream, and resumePause is the time between two
	// attempts.
	resumeTimeout = 5 * time.Second
	resumePause   = 500 * time.Millisecond
)

// leaves reports whether the job's peers may continue without the submitter: the job has begun, and
// they have a majority.
func (e *execution) leaves() bool {
	return e.begin != nil && e.j.req.Away != 0 && e.views.majorityElsewhere()
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
	if cfg := e.j.s.cfg; asleep < max(asleepFor, asleepPeriods*cfg.Period)+cfg.Hang || !e.leaves() {
		return nil
	}
	if !e.partitioned {
		r = e.beginPartition(fmt.Sprintf("this process did not run for %v, and the job's peers may continue without it", asleep.Round(time.Second)))
	}
	for _, l := range e.peers.links {
		r = cmp.Or(r, e.disconnect(l, nil))
	}
	if e.views.inTouch() { // otherwise takeAgreed sets it later
		e.peersDeadline = time.After(e.j.s.waits.reconnect)
	}
	return r
}

// beginPartition starts the reconnect deadline and disconnects the silent peers.
func (e *execution) beginPartition(why string) (r *job.Result) {
	e.partitioned, e.reconnectDeadline = true, time.After(e.j.req.Away)
	e.j.warn(fmt.Sprintf("%s; waiting up to %v to reconnect", why, e.j.req.Away))
	held := e.deferredFailures
	e.deferredFailures = nil
	for _, l := range held {
		r = cmp.Or(r, e.disconnect(l, nil))
	}
	return r
}

// disconnect disconnects a peer that is silent, or whose stream ended with err, and starts to reopen
// the stream. A recruit that has not joined is lost: it would wait for the submitter to let it
// begin.
func (e *execution) disconnect(l *link, err error) *job.Result {
	switch {
	case l.err != nil || l.disconnected || l.retired:
		return nil
	case l.recruit != nil:
		return e.loseSilentPeer(l)
	}
	e.recruitment.abandonAdditions(l)
	l.end()
	last := l.stream
	if endedByPeer(err) {
		last = nil // its connection works
	}
	l.wire, l.disconnected, l.disconnectedAt = newWire(), true, time.Now() // the peer repeats what the old stream still delivers
	m := &jobpb.Resume{Job: e.j.spec.ID, Heard: l.count, Anew: e.resumption != nil}
	pause := time.Until(l.backAt.Add(resumePause))
	l.running.Go(func() { // ends with the link
		if l.sleep(pause) {
			l.reopen(e.j.s, last, m, e.peers.inbox)
		}
	})
	return nil
}

// endedByPeer reports whether err means that the peer itself ended the stream. The end of the
// connection, which resets all its streams, does not count, nor does a failed write.
func endedByPeer(err error) bool {
	reset, ok := errors.AsType[*network.StreamError](err)
	return errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) || ok && reset.Remote && reset.ErrorCode != jobpb.Unwritten
}

// garbled reports whether err means that the data received is no message. Its sender does not speak
// the protocol, and would not on another stream.
func garbled(err error) bool {
	return errors.Is(err, proto.Error) || errors.Is(err, io.ErrShortBuffer) || // too long
		errors.Is(err, varint.ErrOverflow) || errors.Is(err, varint.ErrNotMinimal)
}

// reopen opens a new stream in place of last, whose connection it closes; last is nil if there is
// no such connection. The first message on the new stream goes to inbox.
func (l *link) reopen(s *Submitter, last network.Stream, resume *jobpb.Resume, inbox inbox) {
	h := s.cfg.Host
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	if resume.Anew { // otherwise the peer's addresses are recent
		l.running.Go(func() { l.locate(ctx, s) }) // ends with this function
	}
	m := &jobpb.ToPeer{Body: &jobpb.ToPeer_Resume{Resume: resume}}
	// On the old connection, new data would wait for a TCP retransmission, for about as long as the
	// link was cut. Other connections may serve other jobs and work, so they are closed only after
	// a failed attempt.
	if last != nil {
		_ = last.Conn().Close()
	}
	for {
		begun := time.Now()
		if w, answer, err := l.resume(h, m); err == nil {
			if !inbox.put(received{link: l, wire: w, back: true, msg: answer}) {
				w.end()
			}
			return
		} else if isReplaced(err) {
			inbox.put(received{link: l, wire: l.wire, err: err})
			return
		}
		if !l.sleep(resumePause) {
			return
		}
		for _, c := range h.Network().ConnsToPeer(l.peer) {
			if c.Stat().Opened.Before(begun) {
				_ = c.Close()
			}
		}
	}
}

// locatePause is the longest pause between two lookups of a peer.
const locatePause = time.Minute

// locate looks up the peer's addresses, at growing intervals, until ctx ends.
func (l *link) locate(ctx context.Context, s *Submitter) {
	for pause := s.waits.locate; ; pause = min(2*pause, locatePause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if err := s.cfg.Discovery.Locate(ctx, l.peer); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug().Err(err).Msg("not found")
		}
	}
}

// sleep waits for d and reports whether the link is still open.
func (l *link) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-l.ctx.Done():
	}
	return l.ctx.Err() == nil
}

// resume makes one attempt to reopen the stream.
func (l *link) resume(h host.Host, m *jobpb.ToPeer) (w *wire, answer *jobpb.FromPeer, err error) {
	redial.Allow(h, l.peer)
	ctx, cancel := context.WithTimeout(l.ctx, resumeTimeout)
	defer cancel()
	stream, err := h.NewStream(ctx, l.peer, Protocol)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	w, answer = newWire(), &jobpb.FromPeer{}
	w.stream, w.in = stream, pbio.NewDelimitedReader(stream, jobpb.MaxMessage)
	if err = pbio.NewDelimitedWriter(stream).WriteMsg(m); err == nil {
		err = w.in.ReadMsg(answer)
	}
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stream.Reset()
	}
	return w, answer, err
}

// switchStream switches the link to a reopened stream.
func (e *execution) switchStream(h received) {
	l := h.link
	l.wire, l.disconnected, l.backAt = h.wire, false, time.Now()
	l.listen(e.peers.inbox)
	if l.stopProbe != nil {
		l.stopProbe()
	}
}

// resumed continues with a peer whose stream was reopened.
func (e *execution) resumed(h received) *job.Result {
	l := h.link
	if h.late() {
		return nil
	}
	e.switchStream(h)
	answer := h.msg.GetResumed()
	if answer == nil {
		return e.protocolError(l, unexpected(h.msg))
	}
	if answer.Error != "" {
		return e.lose(l, "its part of the job has ended", errors.New(plain(answer.Error)))
	}
	l.expectedCount = answer.Said
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
	if e.resumption != nil { // the peer knows later views than this process
		for p := range e.peers.runsOn {
			if e.peers.entered(p, e.state.View()) && e.state.JoinPending(p.Rank) {
				e.views.repeatJoin(l, p)
			}
		}
		for _, c := range e.state.Asked() {
			l.send(e.views.proposeMessage(c))
		}
	} else {
		for p, on := range e.peers.runsOn {
			if p.Replica >= e.j.req.R && (v.Has(p) || e.peers.entered(p, e.state.View())) {
				l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: e.peers.row(on, p)}})
			}
		}
		l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}})
	}
	for _, p := range l.processes {
		l.send(e.outputs.emitted(p.Rank))
		e.collector.askAgain(p)
	}
}

// isDisconnected reports whether the peer is disconnected, or has yet to repeat the messages that the
// submitter missed.
func isDisconnected(l *link) bool {
	return l.err == nil && (l.disconnected || l.count < l.expectedCount)
}

// rejoin resumes normal operation once this peer is in touch and each other peer has reconnected or
// is lost.
func (e *execution) rejoin() (r *job.Result) {
	if !e.views.inTouch() || slices.ContainsFunc(e.peers.links, isDisconnected) {
		return nil
	}
	e.partitioned, e.reconnectDeadline, e.peersDeadline = false, nil, nil
	e.j.warn("reconnected to the job's peers")
	changes := e.pendingChanges
	e.pendingChanges = nil
	for _, c := range changes {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	e.regroup()
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

// reconnectTimedOut ends the job after the reconnect deadline.
func (e *execution) reconnectTimedOut() *job.Result {
	r := e.loseDisconnected("it has been silent for too long")
	r = cmp.Or(r, e.apply(e.state.CutOff()))
	return r
}

// tellStop tells a peer whose stream was reopened that the job is over.
func (e *execution) tellStop(h received, reason string) {
	if !h.late() {
		e.switchStream(h)
		h.link.send(stopMessage(reason))
	}
}
