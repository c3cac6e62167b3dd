package job

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
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// What a submitter does that is cut off from most of those who agree on views, while they
// may go on without it:
//
//	in touch --- CutOff ---> parted: streams to who is silent are made anew, each until its
//	   ^                     |       peer answers; what is agreed on meanwhile is kept
//	   |                     |
//	   +---- rejoin <--------+  in touch, and each peer is back or lost: now that all has been
//	         regroup         |  heard that the changes follow from, they are taken
//	                         |
//	                         +-- despair, after Request.Away: the job ends
//
// A submitter that did not run for a while has been cut off, too, and finds that out by its
// clock (wake). A peer that is away repeats what this one has not heard, and is told what it
// may have missed (package launch, attachment.go). Nothing is decided here meanwhile (V2).

// MaxAway bounds how long a job goes on while its peers and the submitter are cut off from
// each other.
const MaxAway = time.Hour

const (
	// resumeTimeout bounds one attempt to make a stream anew, and resumePause is the
	// time between two.
	resumeTimeout = 5 * time.Second
	resumePause   = 500 * time.Millisecond
)

// leaves reports whether the job's peers may go on without this one: it has begun, and so
// many of those who vote are not known to be lost that they are a majority.
func (e *execution) leaves() bool {
	if e.views == nil || e.begin == nil || e.j.req.Away == 0 {
		return false
	}
	left := 0
	for _, l := range e.links {
		if l.err == nil && !l.retired && l.peer != e.j.s.cfg.Host.ID() && e.views.Votes(l.peer) {
			left++
		}
	}
	return 2*left > e.views.Voters()
}

const (
	// pulsePeriod is how often a job looks whether its process runs.
	pulsePeriod = time.Second
	// asleepFor is for how long, or for how many periods of the detector, it does not run until
	// it was as good as cut off: the peers have missed it. They tolerate a hang beside that.
	asleepFor, asleepPeriods = 10 * time.Second, 10
)

// wake looks whether this process has run all the time, as it has not when it was stopped or
// its machine was suspended. After long it has been cut off, and knows nothing of its peers:
// not even that connections have broken means that they have ended. So all streams are made
// anew.
func (e *execution) wake() (r *Result) {
	asleep := uptime() - e.awake
	e.awake += asleep
	if cfg := e.j.s.cfg; asleep < max(asleepFor, asleepPeriods*cfg.Period)+cfg.Hang || !e.leaves() {
		return nil
	}
	if !e.parted {
		r = e.part(fmt.Sprintf("this process did not run for %v, and the job's peers may go on without it", asleep.Round(time.Second)))
	}
	for _, l := range e.links {
		r = cmp.Or(r, e.strand(l, nil))
	}
	if e.views.Contact() == viewgroup.InTouch { // else it says when it is
		e.overdue = time.After(e.j.s.waits.back)
	}
	return r
}

// part begins to wait for those who are silent.
func (e *execution) part(why string) (r *Result) {
	e.parted, e.patience = true, time.After(e.j.req.Away)
	e.j.warn(fmt.Sprintf("%s; waiting up to %v to come back to it", why, e.j.req.Away))
	held := e.held
	e.held = nil
	for _, l := range held {
		r = cmp.Or(r, e.strand(l, nil))
	}
	return r
}

// strand has the stream to a peer made anew that is silent, or whose stream has ended as err
// says. A recruit that has not joined is lost: it waits for this one to let it begin.
func (e *execution) strand(l *link, err error) *Result {
	switch {
	case l.err != nil || l.away || l.retired:
		return nil
	case l.recruit != nil:
		return e.miss(l)
	}
	e.forsakeAdditions(l)
	l.end()
	last := l.stream
	if endedByPeer(err) {
		last = nil // its connection works
	}
	l.wire, l.away, l.awayAt = newWire(), true, time.Now() // what the old one still brings will be repeated
	m := &jobpb.Resume{Job: e.j.spec.ID, Heard: l.count, Anew: e.adopted != nil}
	pause := time.Until(l.backAt.Add(resumePause))
	l.running.Go(func() { // ends with the link
		if l.rest(pause) {
			l.reopen(e.j.s, last, m, e.inbox, e.done)
		}
	})
	return nil
}

// endedByPeer reports whether err says of a stream that its other side has ended it: not
// the connection, whose end resets all its streams, or which takes nothing any more.
func endedByPeer(err error) bool {
	reset, ok := errors.AsType[*network.StreamError](err)
	return errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) || ok && reset.Remote && reset.ErrorCode != jobpb.Unwritten
}

// garbled reports whether err says that what came is no message: its sender does not speak
// the protocol, and would not on another stream.
func garbled(err error) bool {
	return errors.Is(err, proto.Error) || errors.Is(err, io.ErrShortBuffer) || // too long
		errors.Is(err, varint.ErrOverflow) || errors.Is(err, varint.ErrNotMinimal)
}

// reopen makes the stream anew, the last of which is nil if there was none. What it hears
// first goes to inbox. The connection of the last is closed.
func (l *link) reopen(s *Submitter, last network.Stream, resume *jobpb.Resume, inbox chan<- heard, done <-chan struct{}) {
	h := s.cfg.Host
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	if resume.Anew { // else it was there a moment ago
		l.running.Go(func() { l.locate(ctx, s) }) // ends with this function
	}
	m := &jobpb.ToPeer{Body: &jobpb.ToPeer_Resume{Resume: resume}}
	// On the old connection what is sent waits for TCP to try again, about as long as the
	// link was cut. Others may be other jobs', and work: they have to show that they do not.
	if last != nil {
		_ = last.Conn().Close()
	}
	for {
		begun := time.Now()
		if w, answer, err := l.resume(h, m); err == nil {
			select {
			case inbox <- heard{link: l, wire: w, back: true, msg: answer}:
			case <-done:
				w.end()
			}
			return
		} else if isReplaced(err) {
			select {
			case inbox <- heard{link: l, wire: l.wire, err: err}:
			case <-done:
			}
			return
		}
		if !l.rest(resumePause) {
			return
		}
		for _, c := range h.Network().ConnsToPeer(l.peer) {
			if c.Stat().Opened.Before(begun) {
				_ = c.Close()
			}
		}
	}
}

// locatePause is at most between two lookups of a peer.
const locatePause = time.Minute

// locate looks up where the peer is, ever more rarely, until ctx ends.
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

// rest lets some time pass, and reports whether the link still is.
func (l *link) rest(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-l.ctx.Done():
	}
	return l.ctx.Err() == nil
}

// resume makes one attempt.
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

// rewire hears and speaks on the stream to a peer that has been made anew.
func (e *execution) rewire(h heard) {
	l := h.link
	l.wire, l.away, l.backAt = h.wire, false, time.Now()
	l.listen(e.inbox, e.done)
	if l.mended != nil {
		l.mended()
	}
}

// resumed goes on with a peer whose stream has been made anew.
func (e *execution) resumed(h heard) *Result {
	l := h.link
	if h.late() {
		return nil
	}
	e.rewire(h)
	answer := h.msg.GetResumed()
	if answer == nil {
		return e.breach(l, unexpected(h.msg))
	}
	if answer.Error != "" {
		return e.lose(l, "its part of the job has ended", errors.New(plain(answer.Error)))
	}
	l.owes = answer.Said
	for _, p := range l.processes {
		delete(e.unspoken, p) // it is repeated
	}
	e.knock(l)
	e.remind(l)
	return nil
}

// remind tells a peer what it may have missed. What it knows means nothing to it.
func (e *execution) remind(l *link) {
	v := e.watch.View()
	for p, key := range l.dropped {
		l.say(dropMessage(p, key))
	}
	if e.generation > 0 && slices.Contains(e.group, l.peer) { // a recruit of before joins none
		l.say(e.joinMessage(e.group...))
	}
	if e.begin != nil && slices.ContainsFunc(l.processes, v.Has) { // one that has yet to join waits for that
		l.say(e.begin)
	}
	if e.adopted != nil { // it knows more of the view than this process
		for p := range e.runsOn {
			if e.entered(p) && e.watch.Expects(p.Rank) {
				e.vouch(l, p)
			}
		}
		for _, c := range e.watch.Asked() {
			l.say(e.proposeMessage(c))
		}
	} else {
		for p, on := range e.runsOn {
			if p.Replica >= e.j.req.R && (v.Has(p) || e.entered(p)) {
				l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: e.row(on, p)}})
			}
		}
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}})
	}
	for _, p := range l.processes {
		l.say(e.emitted(p.Rank))
		if answer, asked := e.answers[p]; asked && answer == nil {
			e.askFiles(p)
		}
	}
}

// isAway reports whether a stream to the peer is being made anew, or has yet to bring what
// its part has said meanwhile.
func isAway(l *link) bool { return l.err == nil && (l.away || l.count < l.owes) }

// rejoin takes the job up again when this peer is in touch and nobody is away any more.
func (e *execution) rejoin() (r *Result) {
	if e.views.Contact() != viewgroup.InTouch || slices.ContainsFunc(e.links, isAway) {
		return nil
	}
	e.parted, e.patience, e.overdue = false, nil, nil
	e.j.warn("in touch with the job's peers again")
	changes := e.kept
	e.kept = nil
	for _, c := range changes {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	e.regroup()
	return r
}

// loseAway gives up the peers that are away.
func (e *execution) loseAway(why string) (r *Result) {
	for _, l := range e.links {
		if isAway(l) {
			r = cmp.Or(r, e.lose(l, why, errSilent))
		}
	}
	return r
}

// despair ends a job that this peer has waited for long enough.
func (e *execution) despair() *Result {
	r := e.loseAway("it has been silent for too long")
	r = cmp.Or(r, e.apply(e.watch.CutOff()))
	return r
}

// tellStop tells a peer whose stream has been made anew that the job is over.
func (e *execution) tellStop(h heard, reason string) {
	if !h.late() {
		e.rewire(h)
		h.link.say(stopMessage(reason))
	}
}
