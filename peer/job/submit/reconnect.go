package submit

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/multiformats/go-varint"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A disconnected peer has not failed. When its control stream breaks, the submitter reopens it, as
// a submitter that was cut off does (disconnected.go), while the rest of the job continues. It
// repeats the attempts after pauses of resumePause until one of these cases ends them:
//
//	the stream breaks --+-- the peer answers -------------> resumed: missed messages are repeated
//	                    |     that it does not know the job -> lost
//	                    +-- its machine refuses
//	                    |     connections to the peer ------> lost, at once (F2)
//	                    '-- the detector finds it silent ---> lost, after the tolerated hang;
//	                        while it stages, before there is a detector: after replaceAfter() if
//	                        another peer is free, else after waits.disconnected

var errRefused = errors.New("its machine refuses connections, so its process has ended")

const (
	// resumeTimeout limits one attempt to reopen a stream, and resumePause is the time between two
	// attempts.
	resumeTimeout = 5 * time.Second
	resumePause   = 500 * time.Millisecond
)

// mayReconnect reports whether to reopen a stream that ended with err: the peer neither ended it nor
// sent garbage, and it stages the job or has begun it. In the short time between, a broken stream
// means that the peer failed.
func (m *membership) mayReconnect(l *link, err error) bool {
	return m.reopens && l.recruit == nil && l.stream != nil && l.peer != m.j.s.cfg.Host.ID() && !endedByPeer(err) && !garbled(err)
}

// reconnect starts to reopen the stream to a peer, which broke, and to check whether the peer still
// runs.
func (m *membership) reconnect(l *link, err error) {
	m.j.log.Info().Stringer("peer", l.peer).Err(err).Msg("the control stream broke")
	last := l.stream.Conn().RemoteMultiaddr()
	m.reopen(l, err)
	w := l.wire
	ctx, cancel := context.WithCancel(l.ctx)
	l.session.stopProbe = cancel
	l.running.Go(func() { // ends with the link, or when the stream is there
		defer cancel()
		if l.endpoints.AwaitRefused(ctx, last, m.j.s.cfg.Host.Peerstore().Addrs(l.peer)) {
			m.inbox.put(received{link: l, wire: w, err: errRefused})
		}
	})
}

// reopen ends the stream to a peer that is silent, or whose stream ended with err, and starts to
// reopen it. The peer is disconnected until then.
func (m *membership) reopen(l *link, err error) {
	l.end()
	last := l.stream
	if endedByPeer(err) {
		last = nil // its connection works
	}
	l.wire, l.session.disconnected, l.session.since = newWire(), true, time.Now() // the peer repeats what the old stream still delivers
	message := &jobpb.Resume{Job: m.j.spec.ID, Heard: l.session.received, NewProcess: m.j.resumed}
	pause := time.Until(l.session.reopened.Add(resumePause))
	l.running.Go(func() { // ends with the link
		if l.sleep(pause) {
			l.reopen(m.j.s, last, message, m.inbox)
		}
	})
}

// probeAddresses finds out at which addresses a running peer accepts connections, so that reconnect
// can tell later that the peer has stopped.
func (l *link) probeAddresses(h host.Host) {
	if l.err == nil && l.peer != h.ID() {
		l.running.Go(func() { l.endpoints.Probe(l.ctx, h, l.peer) }) // ends within 3 s
	}
}

// switchStream switches the link to a reopened stream.
func (m *membership) switchStream(h received) {
	l := h.link
	l.wire, l.session.disconnected, l.session.reopened = h.wire, false, time.Now()
	l.listen(m.inbox)
	if l.session.stopProbe != nil {
		l.session.stopProbe()
	}
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
	if resume.NewProcess { // otherwise the peer's addresses are recent
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
