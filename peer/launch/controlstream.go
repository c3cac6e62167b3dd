package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A controlStream is a control stream of the job's submitter: the first one, or one by which the submitter
// has reconnected.
//
//	submitter                               peer
//	    |== first stream, broken ========... |  absentsubmitter.go: the job continues
//	    |-- Resume(job, heard) ------------->|  new stream
//	    |<-- Resumed ------------------------|
//	    |<-- messages after heard -----------|
//	    |<-- output not acknowledged --------|  numbered, so duplicates are recognized
//	    |-- Begin, View, Emitted, ... ------>|  may repeat what has arrived; repetitions have no effect
//	    |-- Join(next generation) ---------->|  the submitter no longer counts as silent; a new process
//	    |                                    |  of the submitter sends neither this nor View
type controlStream struct {
	network.Stream
	out     chan *jobpb.FromPeer
	pace    func(ctx context.Context, n int) error // delays output
	written chan struct{}                          // closed when the writer has finished
}

// A control is this peer's end of the communication with a job's submitter: all messages to it, in order, and
// the stream on which they are sent.
type control struct {
	stream   *controlStream    // nil: none
	messages []*jobpb.FromPeer // all messages except output, from the first: they may have to be sent again
	sent     int               // how many of them have been sent
	head     *jobpb.FromPeer   // message offered to the writer
	last     *jobpb.FromPeer   // last message of the job; nil: none
}

// maxRecorded bounds the messages that this peer keeps for a submitter. Each process causes a few. Further
// messages report progress during hours of staging, and at most one failure of each peer per generation of
// the detector's group.
const maxRecorded = 1 << 18

// queue queues a message to the submitter.
func (c *control) queue(m *jobpb.FromPeer) error {
	if len(c.messages) >= maxRecorded {
		return fmt.Errorf("more than %d messages to the submitter", maxRecorded)
	}
	c.messages = append(c.messages, m)
	return nil
}

// next returns the next message to the submitter, and the channel that takes it. Queued messages come before
// output, which the given function returns. The channel is nil if there is no message, or no stream.
func (c *control) next(output func() *jobpb.FromPeer) (chan<- *jobpb.FromPeer, *jobpb.FromPeer) {
	switch {
	case c.stream == nil:
		return nil, nil
	case c.head != nil:
	case c.sent < len(c.messages):
		c.head = c.messages[c.sent]
		c.sent++
	default:
		c.head = output()
	}
	if c.head == nil {
		return nil, nil
	}
	return c.stream.out, c.head
}

// detach resets the current stream, if there is one.
func (c *control) detach() {
	if c.stream != nil {
		c.stream.Reset()
		close(c.stream.out)
		c.stream, c.head = nil, nil
	}
}

// resume makes the messages after the first heard ones go again.
func (c *control) resume(heard int) {
	c.head, c.sent = resumed(nil, len(c.messages)), heard
}

// leave sends the job's last message, if there is one, and closes the stream cleanly. If ctx ends first, it
// resets the stream.
func (c *control) leave(ctx context.Context) {
	a := c.stream
	if a == nil {
		return
	}
	if c.last != nil {
		select {
		case a.out <- c.last:
		case <-ctx.Done():
		}
	}
	close(a.out)
	stop := context.AfterFunc(ctx, func() { a.Reset() })
	<-a.written
	stop()
	a.Close()
}

// attach makes stream the stream by which the job and its submitter communicate.
func (j *job) attach(stream network.Stream, in pbio.Reader) {
	a := &controlStream{stream, make(chan *jobpb.FromPeer), j.confinement.upload.wait, make(chan struct{})}
	j.control.stream, j.presence.lastMessageAt = a, time.Now()
	j.running.Go(func() { j.read(a, in) })  // ends with the stream
	j.running.Go(func() { a.write(j.ctx) }) // ends with out
}

// read turns the submitter's messages into events until the stream ends.
func (j *job) read(a *controlStream, in pbio.Reader) {
	current := func(event func()) bool {
		return j.do(func() {
			if a == j.control.stream { // otherwise the submitter has opened another stream
				event()
			}
		})
	}
	for {
		m := &jobpb.ToPeer{}
		if err := in.ReadMsg(m); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) { // the stream has ended, its connection has not
				err = errClosed
			}
			current(func() { j.streamBroke(fmt.Errorf("control stream: %w", err)) })
			return
		}
		if !current(func() { j.handle(m) }) {
			return
		}
	}
}

// write sends the job's messages until out is closed. It delays output, except after ctx has ended. After an error it resets the stream, which the reader
// notices, and only drains out.
func (a *controlStream) write(ctx context.Context) {
	defer close(a.written)
	w := jobpb.NewWriter(a)
	broken := false
	for m := range a.out {
		if broken {
			continue
		}
		_ = a.pace(ctx, len(m.GetOutput().GetData()))
		a.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := w.Write(m); err != nil {
			broken = true
			a.ResetWithError(jobpb.Unwritten)
		}
	}
}

// streamBroke handles the end of the control stream. The job ends here if the submitter has ended the
// stream with the code Left. If the submitter had been silent before, the link has broken, and the
// submitter may reconnect. It may also reconnect if neither side ended the stream, unless its machine
// reports that it no longer runs, or the detector finds it silent. Even then, a submitter that keeps a home
// may come back as a new process. In all other cases the submitter has ended, or has given this peer up.
// Between staging and Begin, which is short, the job does not wait for a submitter that is lost.
func (j *job) streamBroke(reason error) {
	last := j.control.stream.Conn().RemoteMultiaddr()
	ended, ok := errors.AsType[*network.StreamError](reason)
	byOther := ok && ended.Remote && ended.ErrorCode != jobpb.Unwritten || errors.Is(reason, errClosed)
	silent := j.presence.silent() && j.init != awaitsBegin
	switch {
	case ok && ended.Remote && ended.ErrorCode == jobpb.Left:
		j.end(reason)
	case silent || byOther || j.init == awaitsBegin && !j.preparing() || j.submitter == j.service.host.ID():
		j.loseSubmitter(reason)
	default:
		if say, _ := j.service.reconnectPace.Due(j.submitter); say {
			j.log.Info().Err(reason).Msg("the control stream broke; the submitter may reconnect")
		}
		j.control.detach()
		j.presence.enter(disconnected, time.Now())
		var ctx context.Context
		ctx, j.presence.stopProbe = context.WithCancel(j.ctx)
		j.running.Go(func() { j.probeSubmitter(ctx, last, reason) }) // ends when the submitter is back, or with the job
	}
}

var errClosed = errors.New("closed")

// preparing reports whether the job has not started yet. The submitter can then repeat all earlier
// messages.
func (j *job) preparing() bool {
	return !j.joining && (j.state == Staging || j.state == Staged)
}

// loseSubmitter handles the loss of a submitter. The job continues only if the submitter was silent before,
// or if it may come back as a new process.
func (j *job) loseSubmitter(reason error) {
	silent := j.presence.silent() && j.init != awaitsBegin
	if !silent && (j.views.group == nil || !j.presence.mayReturn) {
		j.end(reason)
		return
	}
	j.submitterSilent()
	j.control.detach()
}

// probeSubmitter asks the submitter's machine whether the submitter still runs, until it is back.
func (j *job) probeSubmitter(ctx context.Context, last ma.Multiaddr, reason error) {
	if j.presence.endpoints.AwaitRefused(ctx, last, j.service.host.Peerstore().Addrs(j.submitter)) {
		j.do(func() {
			if ctx.Err() == nil { // otherwise the submitter is back
				j.loseSubmitter(reason)
			}
		})
	}
}

// probeAddresses finds out at which addresses the submitter accepts connections while it runs.
func (j *job) probeAddresses() {
	if j.submitter != j.service.host.ID() {
		j.running.Go(func() { j.presence.endpoints.Probe(j.ctx, j.service.host, j.submitter) }) // ends within 3 s
	}
}

var errNewAttempt = errors.New("the submitter has started a new attempt")

// loseDisconnected gives up a submitter that has been disconnected for longer than the job tolerates, if
// nothing else has reported its failure.
func (j *job) loseDisconnected() {
	if j.presence.reconnectOverdue(j.detection.hang, time.Now()) {
		j.loseSubmitter(errSubmitterFailed)
	}
}

// askOver asks a submitter that was out of reach, and is connected again, whether it has ended the job or
// continues without this peer. What it announced in between has not arrived here. A submitter that is a new
// process, or has yet to reattach to the job, cannot answer that, so askOver asks at increasing intervals.
func (j *job) askOver() {
	if !j.presence.asks(time.Now()) || !j.reaches(j.submitter) {
		return
	}
	j.presence.askedNow(time.Now())
	j.running.Go(func() { // ends with ctx, or within 5 s
		if over, _ := jobpb.AskOver(j.ctx, j.service.host, j.submitter, j.spec.ID); over {
			j.do(func() { j.end(errOver) })
		}
	})
}

var errOver = errors.New("the submitter has ended this peer's part of the job")

// resume reconnects a submitter to its job.
func (s *Service) resume(stream network.Stream, in pbio.Reader, m *jobpb.Resume) {
	j, ok := s.lookup(m.Job)
	err := errors.New("no such job here")
	if ok && j.submitter == stream.Conn().RemotePeer() {
		var silentSince time.Time
		answer, ok := query(j, func() error {
			if j.presence.silent() {
				silentSince = j.presence.since
			}
			return j.resume(stream, in, m)
		})
		if ok {
			err = answer
		}
		if err == nil && !m.Anew { // its older connections stay, so that the replaced process learns of that
			s.closeOlderConns(silentSince, stream.Conn())
		}
	}
	switch {
	case errors.Is(err, errReplaced):
		stream.ResetWithError(jobpb.Replaced)
	case err != nil:
		refuse(stream, resumed(err, 0))
	}
}

var errReplaced = errors.New("another process of the submitter has resumed the job")

// closeOlderConns closes the connections to a peer that were opened before the given time, except one.
// Data sent on them would wait for a TCP retransmission.
func (s *Service) closeOlderConns(before time.Time, except network.Conn) {
	for _, c := range s.host.Network().ConnsToPeer(except.RemotePeer()) {
		if c.ID() != except.ID() && c.Stat().Opened.Before(before) {
			_ = c.Close()
		}
	}
}

// resume makes stream the submitter's stream. m tells how many messages the submitter has received.
func (j *job) resume(stream network.Stream, in pbio.Reader, m *jobpb.Resume) error {
	switch {
	case j.ended != nil || j.init == awaitsBegin && !j.preparing() && !m.Anew:
		return errors.New("the job is not running")
	case j.presence.state == orphaned && !m.Anew: // an old process, still in the view group, would propose changes from outdated knowledge
		return errReplaced
	case m.Heard > uint64(len(j.control.messages)):
		return fmt.Errorf("%d messages received of %d", m.Heard, len(j.control.messages))
	case m.Anew && j.views.group == nil:
		return errors.New("the job has no view group to continue it after its submitter")
	}
	if m.Anew && j.presence.state != orphaned {
		j.becomeOrphaned()
	}
	if m.Anew && j.control.stream != nil {
		j.control.stream.ResetWithError(jobpb.Replaced)
	}
	j.presence.reconnected(j.detection.failed[j.submitter], time.Now())
	j.control.detach()
	j.attach(stream, in)
	j.probeAddresses()
	j.control.resume(int(m.Heard))
	j.here.rewind()
	if say, _ := j.service.reconnectPace.Due(j.submitter); say {
		j.log.Info().Uint64("received", m.Heard).Bool("new_process", m.Anew).Int("sent", len(j.control.messages)).Msg("the submitter has reconnected")
	}
	return nil
}
