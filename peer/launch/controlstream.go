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
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
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
	stream  network.Stream
	out     chan *jobpb.FromPeer
	pace    func(*jobpb.FromPeer)
	written chan struct{} // closed when the writer has finished
}

// A submitterSide holds what a job knows about its submitter, and the messages to it.
type submitterSide struct {
	control       *controlStream       // its current stream, or nil
	endpoints     connection.Endpoints // addresses at which it accepts connections
	lastMessageAt time.Time            // time of its last message
	asked         bool                 // it has sent Stop

	silentSince    time.Time          // time since which it is silent; zero: it is not
	askAt          time.Time          // time of the next question whether the job is over, see askOver
	askPause       time.Duration      // interval to the question after that
	disconnectedAt time.Time          // time at which the control stream broke, while the submitter may open another; zero: not broken
	stopProbe      context.CancelFunc // ends asking its machine whether it still runs
	away           time.Duration      // time that the job continues without it, beyond minAbsence
	until          time.Time          // deadline of the job; zero: none
	mayReturn      bool               // it may come back as a new process
	orphaned       bool               // it is a new process without a log: the peers make the views

	messages []*jobpb.FromPeer // all messages except output, from the first: they may have to be sent again
	sent     int               // how many of them have been sent
	head     *jobpb.FromPeer   // message offered to the writer
	turn     int               // index of the process that may send output next
	refusal  *jobpb.FromPeer   // last message of the job
}

// attach makes stream the stream by which the job and its submitter communicate.
func (j *job) attach(stream network.Stream, in pbio.Reader) {
	a := &controlStream{stream, make(chan *jobpb.FromPeer), j.pacePrinted, make(chan struct{})}
	j.control, j.lastMessageAt = a, time.Now()
	j.running.Go(func() { j.read(a, in) }) // ends with the stream
	j.running.Go(a.write)                  // ends with out
}

// detach resets the current stream, if there is one.
func (j *job) detach() {
	if a := j.control; a != nil {
		a.stream.Reset()
		close(a.out)
		j.control, j.head = nil, nil
	}
}

// leave sends the job's last message, if there is one, and closes the stream cleanly.
func (j *job) leave() {
	a := j.control
	if a == nil {
		return
	}
	if j.refusal != nil {
		select {
		case a.out <- j.refusal:
		case <-j.service.ctx.Done():
		}
	}
	close(a.out)
	stop := context.AfterFunc(j.service.ctx, func() { a.stream.Reset() })
	<-a.written
	stop()
	a.stream.Close()
}

// read turns the submitter's messages into events until the stream ends.
func (j *job) read(a *controlStream, in pbio.Reader) {
	current := func(event func()) bool {
		return j.do(func() {
			if a == j.control { // otherwise the submitter has opened another stream
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

// write sends the job's messages until out is closed. After an error it resets the stream, which the reader
// notices, and only drains out.
func (a *controlStream) write() {
	defer close(a.written)
	w := jobpb.NewWriter(a.stream)
	broken := false
	for m := range a.out {
		if broken {
			continue
		}
		a.pace(m)
		a.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := w.Write(m); err != nil {
			broken = true
			a.stream.ResetWithError(jobpb.Unwritten)
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
	silent := !j.silentSince.IsZero() && j.init != awaitsBegin
	switch {
	case ok && ended.Remote && ended.ErrorCode == jobpb.Left:
		j.end(reason)
	case silent || byOther || j.init == awaitsBegin && !j.preparing() || j.submitter == j.service.host.ID():
		j.loseSubmitter(reason)
	default:
		if say, _ := j.service.reconnectPace.Due(j.submitter); say {
			j.log.Info().Err(reason).Msg("the control stream broke; the submitter may reconnect")
		}
		j.detach()
		j.disconnectedAt = time.Now()
		var ctx context.Context
		ctx, j.stopProbe = context.WithCancel(j.ctx)
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
	j.stopProbing()
	silent := !j.silentSince.IsZero() && j.init != awaitsBegin
	if !silent && (j.views == nil || !j.mayReturn) {
		j.end(reason)
		return
	}
	j.submitterSilent()
	j.detach()
}

// probeSubmitter asks the submitter's machine whether the submitter still runs, until it is back.
func (j *job) probeSubmitter(ctx context.Context, last ma.Multiaddr, reason error) {
	if j.endpoints.AwaitRefused(ctx, last, j.service.host.Peerstore().Addrs(j.submitter)) {
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
		j.running.Go(func() { j.endpoints.Probe(j.ctx, j.service.host, j.submitter) }) // ends within 3 s
	}
}

// yieldToNewAttempt ends a job that has not begun, because its submitter brings it again. This peer may
// still wait for the submitter to reconnect, or may not have noticed that the connection was cut.
func (j *job) yieldToNewAttempt() {
	if j.init == awaitsBegin {
		j.end(errNewAttempt)
	}
}

var errNewAttempt = errors.New("the submitter has started a new attempt")

func (j *job) stopProbing() {
	if !j.disconnectedAt.IsZero() {
		j.disconnectedAt = time.Time{}
		j.stopProbe()
	}
}

// loseDisconnected gives up a submitter that has been disconnected for longer than the job tolerates, if
// nothing else has reported its failure.
func (j *job) loseDisconnected() {
	if !j.disconnectedAt.IsZero() && time.Since(j.disconnectedAt) > j.hang+minAbsence {
		j.loseSubmitter(errSubmitterFailed)
	}
}

// maxAskPause bounds the interval between two questions whether the job is over.
const maxAskPause = time.Minute

// askOver asks a submitter that was out of reach, and is connected again, whether it has ended the job or
// continues without this peer. What it announced in between has not arrived here. A submitter that is a new
// process, or has yet to reattach to the job, cannot answer that, so askOver asks at increasing intervals.
func (j *job) askOver() {
	if j.disconnectedAt.IsZero() && j.silentSince.IsZero() || j.orphaned {
		j.askPause = 0
		return
	}
	if time.Now().Before(j.askAt) || !j.reaches(j.submitter) {
		return
	}
	j.askPause = min(max(tickPeriod, 2*j.askPause), maxAskPause)
	j.askAt = time.Now().Add(j.askPause)
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
			silentSince = j.silentSince
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
	case j.orphaned && !m.Anew: // an old process, still in the view group, would propose changes from outdated knowledge
		return errReplaced
	case m.Heard > uint64(len(j.messages)):
		return fmt.Errorf("%d messages received of %d", m.Heard, len(j.messages))
	case m.Anew && j.views == nil:
		return errors.New("the job has no view group to continue it after its submitter")
	}
	if m.Anew && !j.orphaned {
		j.becomeOrphaned()
	}
	if m.Anew && j.control != nil {
		j.control.stream.ResetWithError(jobpb.Replaced)
	}
	j.stopProbing()
	if !m.Anew && !j.failed[j.submitter] {
		j.silentSince = time.Time{} // it was presumed dead, and the detector has not found it silent
	}
	j.detach()
	j.attach(stream, in)
	j.probeAddresses()
	j.head, j.sent = resumed(nil, len(j.messages)), int(m.Heard)
	for _, p := range j.local {
		for s := range p.out {
			p.out[s].box.Rewind()
		}
	}
	if say, _ := j.service.reconnectPace.Due(j.submitter); say {
		j.log.Info().Uint64("received", m.Heard).Bool("new_process", m.Anew).Int("sent", len(j.messages)).Msg("the submitter has reconnected")
	}
	return nil
}
