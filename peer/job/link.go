package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// Protocol is the control stream's protocol ID.
const Protocol protocol.ID = "/p2pmpi/job/1.0.0"

const (
	dialTimeout = 10 * time.Second
	// writeTimeout bounds one message. The messages are small, so a peer that
	// takes longer has not read for a long time.
	writeTimeout = 10 * time.Second
	// outgoing bounds the messages that wait for a peer which does not read.
	outgoing = 1024
)

// A link is the control stream to one of the job's peers.
type link struct {
	peer      p2ppeer.ID
	processes []view.Process

	stream  network.Stream
	out     chan *jobpb.ToPeer
	running sync.WaitGroup

	// Owned by the goroutine that runs the job.
	staged, total int64 // bytes
	stopped       bool
	err           error // not nil: the peer is lost to the job
}

// heard is what comes in over a link: a message, or the error that ended it.
type heard struct {
	link *link
	msg  *jobpb.FromPeer
	err  error
}

// openLink opens the control stream to a peer. What it hears goes to inbox
// until done is closed.
func openLink(ctx context.Context, h host.Host, p p2ppeer.ID, processes []view.Process, inbox chan<- heard, done <-chan struct{}) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := h.NewStream(ctx, p, Protocol)
	if err != nil {
		return nil, fmt.Errorf("open control stream to %s: %w", p, err)
	}
	l := &link{peer: p, processes: processes, stream: s, out: make(chan *jobpb.ToPeer, outgoing)}
	l.running.Add(2)
	go l.read(inbox, done)
	go l.write()
	return l, nil
}

// read ends when the stream does.
func (l *link) read(inbox chan<- heard, done <-chan struct{}) {
	defer l.running.Done()
	reader := pbio.NewDelimitedReader(l.stream, jobpb.MaxMessage)
	for {
		h := heard{link: l, msg: &jobpb.FromPeer{}}
		if h.err = reader.ReadMsg(h.msg); h.err != nil {
			h.msg = nil
		}
		select {
		case inbox <- h:
		case <-done:
			return
		}
		if h.err != nil {
			return
		}
	}
}

// write ends when out is closed. After an error it only drains.
func (l *link) write() {
	defer l.running.Done()
	writer := pbio.NewDelimitedWriter(l.stream)
	var broken bool
	for m := range l.out {
		if broken {
			continue
		}
		l.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := writer.WriteMsg(m); err != nil {
			l.stream.Reset() // read then reports the loss
			broken = true
		}
	}
}

// say queues a message. A peer that has not read the last ones is reset.
func (l *link) say(m *jobpb.ToPeer) {
	if l.err != nil {
		return
	}
	select {
	case l.out <- m:
	default:
		l.stream.Reset()
	}
}

// errLost marks a link whose peer the detector has given up.
var errLost = errors.New("silent")

// lose gives the peer up: should it still be there, the reset stream tells it
// that the job goes on without it.
func (l *link) lose(err error) {
	if l.err == nil {
		l.err = err
		l.stream.Reset()
	}
}

// close ends the link and its goroutines. The inbox's done must be closed.
func (l *link) close() {
	close(l.out)
	l.stream.Reset()
	l.running.Wait()
}
