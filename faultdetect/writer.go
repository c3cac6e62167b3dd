package faultdetect

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/redial"
)

// dialTimeout bounds opening a connection and a stream. On a wide network this may take several periods;
// only messages to this target wait.
const dialTimeout = 5 * time.Second

// A writer sends to one member, on one stream that it keeps open. It has its own goroutine, so that a
// slow, frozen or unreachable target delays neither the ticks nor other targets.
type writer struct {
	group  *Group
	to     int
	queue  *outQueue
	cancel context.CancelFunc
	stream network.Stream // nil if there is none
	stop   func() bool    // unregisters the stream's reset on the end of the context

	encoder Encoder // for the current stream
}

func (g *Group) newWriter(to int) *writer {
	w := &writer{group: g, to: to, queue: newOutQueue()}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(g.ctx)
	g.wg.Go(func() { w.run(ctx) }) // ends with ctx: the group is closed or the member has failed
	return w
}

func (w *writer) run(ctx context.Context) {
	defer w.drop()
	for {
		m, ok := w.queue.take(ctx)
		if !ok {
			return
		}
		if err := w.send(ctx, m); err != nil && ctx.Err() == nil {
			w.group.log.Debug().Err(err).Stringer("peer", w.group.peers[w.to]).Msg("heartbeat not sent")
		}
	}
}

// send writes m on the open stream or, if that has ended, on a new one.
func (w *writer) send(ctx context.Context, m Message) error {
	if w.stream != nil && w.write(w.encoder.encode(m)) == nil {
		return nil
	}
	if err := w.open(ctx); err != nil {
		return fmt.Errorf("open heartbeat stream to member %d: %w", w.to, err)
	}
	if err := w.write(&pb.Hello{Job: w.group.job}); err != nil {
		return fmt.Errorf("greet member %d: %w", w.to, err)
	}
	if err := w.write(w.encoder.encode(m)); err != nil {
		return fmt.Errorf("send heartbeat to member %d: %w", w.to, err)
	}
	return nil
}

func (w *writer) open(ctx context.Context) error {
	h, to := w.group.service.host, w.group.peers[w.to]
	redial.Allow(h, to) // the writer itself dials at most once at a time
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stream, err := h.NewStream(network.WithAllowLimitedConn(dialCtx, "heartbeats are few and small"), to, Protocol)
	if err != nil {
		return err
	}
	w.stream, w.encoder = stream, Encoder{}
	w.stop = context.AfterFunc(ctx, func() { _ = stream.Reset() })
	return nil
}

// write writes a message within one period. On error it drops the stream, on which the message may be
// incomplete.
func (w *writer) write(m proto.Message) error {
	err := w.stream.SetWriteDeadline(time.Now().Add(w.group.period))
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
