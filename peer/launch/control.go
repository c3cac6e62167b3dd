package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

const (
	// maxPrepare bounds the first message, in bytes: a signed job and a list of
	// processes. So a stranger's claim to send more costs no memory.
	maxPrepare = jobspec.MaxEncoded + 512<<10

	// prepareTimeout is how long a control stream may say nothing at first.
	prepareTimeout = 30 * time.Second

	// writeTimeout bounds the writing of one message. A submitter that takes
	// longer has stopped reading; it must not, whatever its user does.
	writeTimeout = 60 * time.Second
)

// serveControl hosts the job that a control stream brings, until it ends.
func (s *Service) serveControl(stream network.Stream) {
	submitter := stream.Conn().RemotePeer()
	log := s.config.Log.With().Stringer("submitter", submitter).Logger()
	select {
	case s.pending <- struct{}{}:
	default:
		stream.Reset()
		return
	}
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	stream.SetReadDeadline(time.Now().Add(prepareTimeout))
	in := bufio.NewReader(stream) // shared by both readers, which take it as it is
	var first jobpb.ToPeer
	err := pbio.NewDelimitedReader(in, maxPrepare).ReadMsg(&first)
	<-s.pending
	if !stop() || err != nil {
		log.Debug().Err(err).Msg("control stream without a first message")
		stream.Reset()
		return
	}
	stream.SetReadDeadline(time.Time{})
	j, err := s.admit(&first, submitter)
	if err != nil {
		log.Info().Err(err).Msg("job refused")
		refuse(stream, err)
		return
	}
	j.run(stream, pbio.NewDelimitedReader(in, jobpb.MaxMessage))
}

// refuse answers Prepare with the reason and ends the stream.
func refuse(stream network.Stream, reason error) {
	stream.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(prepared(reason, nil)); err != nil {
		stream.Reset()
		return
	}
	stream.Close()
}

// read turns what the submitter says into events, until the stream ends.
func (j *job) read(in pbio.Reader) {
	defer j.running.Done()
	for {
		m := &jobpb.ToPeer{}
		if err := in.ReadMsg(m); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("closed")
			}
			j.do(func() { j.end(fmt.Errorf("control stream: %w", err)) })
			return
		}
		if !j.do(func() { j.hear(m) }) {
			return
		}
	}
}

// write sends what the job says, until out is closed. After an error, which
// ends the job, it only drains.
func (j *job) write(stream network.Stream, out <-chan *jobpb.FromPeer, written chan<- struct{}) {
	defer close(written)
	w := pbio.NewDelimitedWriter(stream)
	broken := false
	for m := range out {
		if broken {
			continue
		}
		stream.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := w.WriteMsg(m); err != nil {
			broken = true
			stream.Reset() // the reader then ends the job
		}
	}
}
