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

	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// An attachment is a control stream of the job's submitter: the first, or the one by
// which it has come back.
//
//	submitter                               peer
//	    |== first stream, broken ========... |  alone.go: the job goes on
//	    |-- Resume(job, heard) ------------->|  new stream
//	    |<-- Resumed ------------------------|
//	    |<-- what came after heard ----------|
//	    |<-- output not acknowledged --------|  known by number, if it comes twice
//	    |-- Begin, View, Emitted, ... ------>|  what may not have arrived: each means nothing the second time
//	    |-- Join(next generation) ---------->|  it is not missed any more; one that is a new
//	    |                                    |  process says no such thing, and not View
type attachment struct {
	stream  network.Stream
	out     chan *jobpb.FromPeer
	pace    func(*jobpb.FromPeer)
	written chan struct{} // closed when nothing is written any more
}

// A submitterSide is what a job knows of its submitter, and has said to it.
type submitterSide struct {
	attached *attachment      // its stream, or nil
	doors    connection.Doors // where it takes connections
	heardAt  time.Time        // when it said something last
	asked    bool             // it has said Stop

	missed   time.Time          // since when it is silent; zero: it is not
	askAt    time.Time          // when it is next asked whether the job is over, see askOver
	askPause time.Duration      // after that
	cutAt    time.Time          // since when the control stream is broken and may be made anew; zero: it is not
	asking   context.CancelFunc // ends asking its machine whether it still runs
	away     time.Duration      // how long the job goes on without it, beyond missFor
	until    time.Time          // when the job has taken as long as it may; zero: never
	returns  bool               // it may come back as a new process
	orphaned bool               // it is a new process without a log: the peers make the views

	said    []*jobpb.FromPeer // all but output, from the first on: it may have to be repeated
	sent    int               // how many of them are on their way
	head    *jobpb.FromPeer   // offered to the writer
	turn    int               // which process may send output next
	refusal *jobpb.FromPeer   // the last word
}

// attach makes stream the one by which the job hears of its submitter and speaks to it.
func (j *job) attach(stream network.Stream, in pbio.Reader) {
	a := &attachment{stream, make(chan *jobpb.FromPeer), j.pacePrinted, make(chan struct{})}
	j.attached, j.heardAt = a, time.Now()
	j.running.Go(func() { j.read(a, in) }) // ends with the stream
	j.running.Go(a.write)                  // ends with out
}

// detach breaks the stream off, if there is one.
func (j *job) detach() {
	if a := j.attached; a != nil {
		a.stream.Reset()
		close(a.out)
		j.attached, j.head = nil, nil
	}
}

// leave says the job's last word, if there is one, and ends the stream in good order.
func (j *job) leave() {
	a := j.attached
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

// read turns what the submitter says into events, until the stream ends.
func (j *job) read(a *attachment, in pbio.Reader) {
	current := func(event func()) bool {
		return j.do(func() {
			if a == j.attached { // else the submitter has another one by now
				event()
			}
		})
	}
	for {
		m := &jobpb.ToPeer{}
		if err := in.ReadMsg(m); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) { // the stream, and not its connection
				err = errClosed
			}
			current(func() { j.broke(fmt.Errorf("control stream: %w", err)) })
			return
		}
		if !current(func() { j.hear(m) }) {
			return
		}
	}
}

// write sends what the job says, until out is closed. After an error, which the
// reader notices, it only drains.
func (a *attachment) write() {
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

// broke handles the end of the stream. One that the submitter has ended for good ends the
// job here. Where the submitter had been silent before, it is the link that has broken, and the
// submitter may come back. So it may when the stream was ended by neither side, unless its
// machine says that it does not run any more, or the detector finds it silent; then one that
// has a home may still come back as a new process. Else it has ended, or has given this peer up.
// Between staging and the beginning, which is short, none is waited for.
func (j *job) broke(reason error) {
	last := j.attached.stream.Conn().RemoteMultiaddr()
	ended, ok := errors.AsType[*network.StreamError](reason)
	byOther := ok && ended.Remote && ended.ErrorCode != jobpb.Unwritten || errors.Is(reason, errClosed)
	silent := !j.missed.IsZero() && j.keys != nil
	switch {
	case ok && ended.Remote && ended.ErrorCode == jobpb.Left:
		j.end(reason)
	case silent || byOther || j.keys == nil && !j.preparing() || j.submitter == j.service.host.ID():
		j.lose(reason)
	default:
		if say, _ := j.service.returned.Due(j.submitter); say {
			j.log.Info().Err(reason).Msg("the control stream broke; the submitter may come back")
		}
		j.detach()
		j.cutAt = time.Now()
		var ctx context.Context
		ctx, j.asking = context.WithCancel(j.ctx)
		j.running.Go(func() { j.askAfter(ctx, last, reason) }) // ends when the submitter is back, and with the job
	}
}

var errClosed = errors.New("closed")

// preparing reports whether the job is staged for its beginning: what was said until then can
// be repeated.
func (j *job) preparing() bool {
	return !j.joining && (j.state == Staging || j.state == Staged)
}

// lose handles the loss of a submitter that may come back only if it was cut off, or can go
// on as a new process.
func (j *job) lose(reason error) {
	j.stopAsking()
	silent := !j.missed.IsZero() && j.keys != nil
	if !silent && (j.views == nil || !j.returns) {
		j.end(reason)
		return
	}
	j.miss()
	j.detach()
}

// askAfter asks the submitter's machine whether it still runs, until it is back.
func (j *job) askAfter(ctx context.Context, last ma.Multiaddr, reason error) {
	if j.doors.AwaitRefused(ctx, last, j.service.host.Peerstore().Addrs(j.submitter)) {
		j.do(func() {
			if ctx.Err() == nil { // else it is back
				j.lose(reason)
			}
		})
	}
}

// knock finds out where the submitter takes connections while it runs.
func (j *job) knock() {
	if j.submitter != j.service.host.ID() {
		j.running.Go(func() { j.doors.Knock(j.ctx, j.service.host, j.submitter) }) // ends within 3 s
	}
}

// giveWay ends a job that has not begun, as its submitter brings it once more. Whether this peer
// waits for the submitter to come back, or has yet to notice that it was cut off.
func (j *job) giveWay() {
	if j.keys == nil {
		j.end(errBroughtAgain)
	}
}

var errBroughtAgain = errors.New("the submitter has begun anew")

func (j *job) stopAsking() {
	if !j.cutAt.IsZero() {
		j.cutAt = time.Time{}
		j.asking()
	}
}

// awaitCut gives up a submitter that has been cut off for longer than it is tolerated, should
// nobody else say so.
func (j *job) awaitCut() {
	if !j.cutAt.IsZero() && time.Since(j.cutAt) > j.hang+missFor {
		j.lose(errSubmitterFailed)
	}
}

// maxAskPause bounds the time between two questions whether the job is over.
const maxAskPause = time.Minute

// askOver asks a submitter that is connected, and was out of reach, whether it has ended the job or
// goes on without this peer: what it said then has not arrived. One that is a new process, or has yet
// to come back to the job, does not say so, and is asked less and less often.
func (j *job) askOver() {
	if j.cutAt.IsZero() && j.missed.IsZero() || j.orphaned {
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

// resume brings a submitter back to its job.
func (s *Service) resume(stream network.Stream, in pbio.Reader, m *jobpb.Resume) {
	j, ok := s.lookup(m.Job)
	err := errors.New("no such job here")
	if ok && j.submitter == stream.Conn().RemotePeer() {
		var missed time.Time
		answer, ok := query(j, func() error {
			missed = j.missed
			return j.resume(stream, in, m)
		})
		if ok {
			err = answer
		}
		if err == nil && !m.Anew { // who was there before it is to hear that it is replaced
			s.dropBefore(missed, stream.Conn())
		}
	}
	switch {
	case errors.Is(err, errReplaced):
		stream.ResetWithError(jobpb.Replaced)
	case err != nil:
		refuse(stream, resumed(err, 0))
	}
}

var errReplaced = errors.New("another process of the submitter goes on with the job")

// dropBefore closes the connections to a peer that were there before it was missed, but
// one. What is sent on them would wait for TCP to try again.
func (s *Service) dropBefore(missed time.Time, but network.Conn) {
	for _, c := range s.host.Network().ConnsToPeer(but.RemotePeer()) {
		if c.ID() != but.ID() && c.Stat().Opened.Before(missed) {
			_ = c.Close()
		}
	}
}

// resume makes stream the submitter's, which has heard so much of what was said.
func (j *job) resume(stream network.Stream, in pbio.Reader, m *jobpb.Resume) error {
	switch {
	case j.ended != nil || j.keys == nil && !j.preparing() && !m.Anew:
		return errors.New("the job is not under way")
	case j.orphaned && !m.Anew: // it would ask those who agree on views, of whom it is one, for what is known better here
		return errReplaced
	case m.Heard > uint64(len(j.said)):
		return fmt.Errorf("%d messages heard of %d", m.Heard, len(j.said))
	case m.Anew && j.views == nil:
		return errors.New("the job's views have ended with its submitter")
	}
	if m.Anew && !j.orphaned {
		j.orphan()
	}
	if m.Anew && j.attached != nil {
		j.attached.stream.ResetWithError(jobpb.Replaced)
	}
	j.stopAsking()
	if !m.Anew && !j.failed[j.submitter] {
		j.missed = time.Time{} // it was taken for gone, and nobody has found it silent
	}
	j.detach()
	j.attach(stream, in)
	j.knock()
	j.head, j.sent = resumed(nil, len(j.said)), int(m.Heard)
	for _, p := range j.local {
		for s := range p.out {
			p.out[s].box.Rewind()
		}
	}
	if say, _ := j.service.returned.Due(j.submitter); say {
		j.log.Info().Uint64("heard", m.Heard).Bool("anew", m.Anew).Int("said", len(j.said)).Msg("the submitter is back")
	}
	return nil
}
