package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
)

const (
	// maxPrepare bounds the first message, in bytes: a signed job and a list of processes. A stranger that
	// announces a larger message thus costs no memory.
	maxPrepare = jobspec.MaxEncoded + 512<<10

	// prepareTimeout bounds the time until the first message of a control stream.
	prepareTimeout = 30 * time.Second

	// writeTimeout bounds the writing of one message. A submitter that takes longer has stopped reading,
	// which it must not do, whatever its user does.
	writeTimeout = 60 * time.Second
)

// serveControl handles a control stream. If the first message brings a job, serveControl hosts that job
// until it ends. If it resumes one, serveControl passes the stream to that job.
func (s *Service) serveControl(stream network.Stream) {
	submitter := stream.Conn().RemotePeer()
	places := s.pending
	if s.config.Reservations.Holds(submitter) {
		places = s.expected
	}
	give, err := places.Take(submitter)
	if err != nil {
		s.conduct.Note(submitter, "control streams without a message", err)
		stream.Reset()
		return
	}
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	stream.SetReadDeadline(time.Now().Add(prepareTimeout))
	in := bufio.NewReader(stream) // shared by both readers, which add no buffer of their own
	var first jobpb.ToPeer
	err = pbio.NewDelimitedReader(in, maxPrepare).ReadMsg(&first)
	give()
	if !stop() || err != nil {
		s.conduct.Ended(submitter, "control stream without a first message", err)
		stream.Reset()
		return
	}
	stream.SetReadDeadline(time.Time{})
	if m := first.GetResume(); m != nil {
		s.resume(stream, pbio.NewDelimitedReader(in, jobpb.MaxMessage), m)
		return
	}
	j, a, err := s.admit(&first, submitter)
	if err != nil {
		s.conduct.Refused(submitter, "job refused", err, a.describe)
		refuse(stream, prepared(err, nil))
		return
	}
	j.run(stream, pbio.NewDelimitedReader(in, jobpb.MaxMessage))
}

// serveChannel answers another peer that opens a channel to a process here, and forwards the channel's
// bytes if necessary.
func (s *Service) serveChannel(stream network.Stream) {
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	defer stop()
	request, err := switchboard.ReadRequest(stream)
	if err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "channel not opened", err)
		stream.Reset()
		return
	}
	j, ok := s.lookup(request.Job)
	if !ok {
		request.Refuse("job is not here")
		return
	}
	var a switchboard.Acceptance
	err, ok = query(j, func() (err error) {
		a, err = j.board.Accept(request)
		return err
	})
	switch {
	case !ok:
		request.Refuse("job has ended here")
	case err != nil:
		s.config.Log.Debug().Stringer("asked_by", stream.Conn().RemotePeer()).Str("job", request.Job).Err(err).Msg("channel refused")
		request.Refuse(text(err))
	default:
		a.Serve()
	}
}

// refuse sends an answer to the first message that states the reason, and closes the stream.
func refuse(stream network.Stream, answer *jobpb.FromPeer) {
	stream.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(answer); err != nil {
		stream.Reset()
		return
	}
	stream.Close()
}

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
		if err == nil && !m.NewProcess { // its older connections stay, so that the replaced process learns of that
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

// closeOlderConns closes the connections to a peer that were opened before the given time, except one.
// Data sent on them would wait for a TCP retransmission.
func (s *Service) closeOlderConns(before time.Time, except network.Conn) {
	for _, c := range s.host.Network().ConnsToPeer(except.RemotePeer()) {
		if c.ID() != except.ID() && c.Stat().Opened.Before(before) {
			_ = c.Close()
		}
	}
}

// admit accepts the job: it claims the job's ID and redeems its key. After an error nothing is left, and
// the error is for the submitter. The admission then holds the part of the Prepare that was read.
func (s *Service) admit(m *jobpb.ToPeer, submitter p2ppeer.ID) (*job, admission, error) {
	a, err := checkPrepare(m, submitter, runtime.GOOS, runtime.GOARCH, s.config.Decide)
	if err != nil {
		return nil, a, err
	}
	j := newJob(s, a)
	if err := s.claim(j); err != nil {
		j.cancel()
		return nil, a, err
	}
	slots, err := s.config.Reservations.Redeem(a.key, a.spec.ID, submitter)
	if err != nil {
		s.dismiss(j)
		return nil, a, fmt.Errorf("redeem reservation key: %w", err)
	}
	if slots < len(a.processes) {
		s.config.Reservations.Release(a.key)
		s.dismiss(j)
		return nil, a, fmt.Errorf("%d slots reserved for %d processes", slots, len(a.processes))
	}
	j.log = s.limitLogging(j.log, submitter)
	j.populate()
	return j, a, nil
}

// limitLogging reduces logging for a job if its submitter submits jobs in quick succession.
func (s *Service) limitLogging(log zerolog.Logger, submitter p2ppeer.ID) zerolog.Logger {
	switch say, unsaid := s.logPace.Due(submitter); {
	case !say:
		return log.Level(max(zerolog.WarnLevel, log.GetLevel()))
	case unsaid > 0:
		log.Info().Stringer("submitter", submitter).Int("jobs", unsaid).Msg("earlier jobs of this submitter were not logged")
	}
	return log
}

// dismiss removes a job that was claimed and will not begin.
func (s *Service) dismiss(j *job) {
	j.cancel()
	close(j.done)
	s.forget(j)
}
