package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// A link is a stream as this package uses it. It is a libp2p stream, or one end
// of a pipe when the submitter is this peer itself.
type link interface {
	io.ReadWriteCloser
	Reset() error // ends both directions at once; may be called at any time
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// localLink is one end of a net.Pipe or a socket pair.
type localLink struct{ net.Conn }

func (l localLink) Reset() error { return l.Close() }

const (
	// prepareTimeout is how long a control stream may say nothing at first.
	prepareTimeout = 30 * time.Second

	// writeTimeout bounds the writing of one message. A submitter that takes
	// longer has stopped reading; it must not, whatever its user does.
	writeTimeout = 60 * time.Second
)

// serveControl hosts the job that a control stream brings, until it ends.
func (s *Service) serveControl(l link, submitter p2ppeer.ID) {
	log := s.config.Log.With().Stringer("peer", submitter).Logger()
	select {
	case s.pending <- struct{}{}:
	default:
		l.Reset()
		return
	}
	stop := context.AfterFunc(s.ctx, func() { l.Reset() })
	l.SetReadDeadline(time.Now().Add(prepareTimeout))
	in := pbio.NewDelimitedReader(l, jobpb.MaxMessage)
	var first jobpb.ToPeer
	err := in.ReadMsg(&first)
	<-s.pending
	if !stop() || err != nil {
		log.Debug().Err(err).Msg("control stream without a first message")
		l.Reset()
		return
	}
	l.SetReadDeadline(time.Time{})
	j, err := s.admit(&first, submitter)
	if err != nil {
		log.Info().Err(err).Msg("job refused")
		refuse(l, err)
		return
	}
	j.run(l, in)
}

// refuse answers Prepare with the reason and ends the stream.
func refuse(l link, reason error) {
	l.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := pbio.NewDelimitedWriter(l).WriteMsg(prepared(reason)); err != nil {
		l.Reset()
		return
	}
	l.Close()
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
func (j *job) write(l link, out <-chan *jobpb.FromPeer, written chan<- struct{}) {
	defer close(written)
	w := pbio.NewDelimitedWriter(l)
	broken := false
	for m := range out {
		if broken {
			continue
		}
		l.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := w.WriteMsg(m); err != nil {
			broken = true
			l.Reset() // the reader then ends the job
		}
	}
}
