package viewgroup

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup/internal/pb"
)

const (
	// dialTimeout bounds the opening of a connection and a stream.
	dialTimeout = 5 * time.Second
	// writeTimeout bounds the writing of one message.
	writeTimeout = 2 * time.Second
	// maxQueued bounds the messages that wait for one peer. Messages beyond it are dropped; the protocol
	// tolerates their loss.
	maxQueued = 256
)

// A writer sends messages to one peer, on one stream that it keeps open. It has its own goroutine, so a
// slow or lost peer delays neither the ticks nor other peers.
type writer struct {
	group  *Group
	to     p2ppeer.ID
	queue  chan *Message
	stream network.Stream // nil if there is none
	stop   func() bool    // prevents the reset of the stream with the group
}

func (g *Group) newWriter(to p2ppeer.ID) *writer {
	w := &writer{group: g, to: to, queue: make(chan *Message, maxQueued)}
	g.wg.Go(w.run) // ends with the group
	return w
}

// put queues a message. It never blocks.
func (w *writer) put(m *Message) {
	select {
	case w.queue <- m:
	default:
	}
}

func (w *writer) run() {
	defer w.drop()
	for {
		select {
		case m := <-w.queue:
			if err := w.send(m); err != nil && w.group.ctx.Err() == nil {
				w.group.log.Debug().Err(err).Stringer("peer", w.to).Msg("message about views not sent")
			}
		case <-w.group.ctx.Done():
			return
		}
	}
}

// send writes m on the open stream or, if that has ended, on a new one.
func (w *writer) send(m *Message) error {
	if w.stream != nil && w.write(m) == nil {
		return nil
	}
	if err := w.open(); err != nil {
		return fmt.Errorf("open view stream to peer %s: %w", w.to, err)
	}
	if err := w.write(&pb.Hello{Job: w.group.config.Job}); err != nil {
		return fmt.Errorf("greet peer %s: %w", w.to, err)
	}
	if err := w.write(m); err != nil {
		return fmt.Errorf("send to peer %s: %w", w.to, err)
	}
	return nil
}

func (w *writer) open() error {
	g := w.group
	h := g.service.host
	redial.Allow(h, w.to) // no backoff needed: one dial at a time
	ctx, cancel := context.WithTimeout(g.ctx, dialTimeout)
	defer cancel()
	stream, err := h.NewStream(network.WithAllowLimitedConn(ctx, "changes of views are few and small"), w.to, Protocol)
	if err != nil {
		return err
	}
	w.stream = stream
	w.stop = context.AfterFunc(g.ctx, func() { _ = stream.Reset() })
	return nil
}

// write sends one message. After an error it drops the stream, since a part of the message may have been
// sent.
func (w *writer) write(m proto.Message) error {
	err := w.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		err = pbio.NewDelimitedWriter(w.stream).WriteMsg(m)
	}
	if err != nil {
		w.drop()
	}
	return err
}

func (w *writer) drop() {
	if w.stream != nil {
		w.stop()
		_ = w.stream.Reset()
		w.stream = nil
	}
}
