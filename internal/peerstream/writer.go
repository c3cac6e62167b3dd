package peerstream

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/redial"
)

// dialTimeout bounds the time for opening a connection and a stream. Over a long distance, this may take several
// heartbeat periods. Only the messages to that peer wait.
const dialTimeout = 5 * time.Second

// Config describes the messages from this host to one peer.
type Config[M any] struct {
	Host     host.Host
	To       p2ppeer.ID
	Protocol protocol.ID
	Hello    proto.Message // the first message on each stream
	Timeout  time.Duration // bounds the time for writing one message
	Log      zerolog.Logger

	// NewEncoder is called for each new stream. It returns the function that encodes the messages on that
	// stream, which may depend on earlier messages on the same stream.
	NewEncoder func() func(M) proto.Message

	// Supersedes reports whether the message m replaces an older message that is still in the queue. If
	// Supersedes is nil, no message does.
	Supersedes func(m, older M) bool
	// MaxQueued is the maximum number of messages in the queue. Further messages are dropped. If MaxQueued is
	// 0, there is no limit, and Supersedes must bound the queue.
	MaxQueued int
	// MaxBytes is the maximum of the sum of Size over the messages in the queue. Further messages are dropped.
	// If MaxBytes is 0, there is no limit.
	MaxBytes int
	Size     func(M) int
}

// A Writer sends messages to one peer, on one stream that it keeps open.
type Writer[M any] struct {
	config Config[M]
	queue  queue[M]

	// Used only by Run.
	stream network.Stream // the open stream, or nil
	encode func(M) proto.Message
	stop   func() bool // the stream is then no longer reset when the context ends
}

// NewWriter returns a Writer that sends no messages until Run is called.
func NewWriter[M any](c Config[M]) *Writer[M] {
	return &Writer[M]{config: c, queue: queue[M]{
		supersedes: c.Supersedes, limit: c.MaxQueued, maxBytes: c.MaxBytes, size: c.Size, ready: make(chan struct{}, 1),
	}}
}

// Put queues a message. It never blocks.
func (w *Writer[M]) Put(m M) { w.queue.put(m) }

// Run sends the queued messages until ctx ends. It logs a message that cannot be sent and drops it.
func (w *Writer[M]) Run(ctx context.Context) {
	defer w.drop()
	for {
		m, ok := w.queue.take(ctx)
		if !ok {
			return
		}
		if err := w.send(ctx, m); err != nil && ctx.Err() == nil {
			w.config.Log.Debug().Err(err).Stringer("peer", w.config.To).Str("protocol", string(w.config.Protocol)).Msg("message not sent")
		}
	}
}

// send writes m on the open stream. If that fails, or there is no stream, send writes m on a new stream.
func (w *Writer[M]) send(ctx context.Context, m M) error {
	if w.stream != nil && w.write(w.encode(m)) == nil {
		return nil
	}
	if err := w.open(ctx); err != nil {
		return fmt.Errorf("open stream: %w", err)
	}
	if err := w.write(w.config.Hello); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	if err := w.write(w.encode(m)); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

func (w *Writer[M]) open(ctx context.Context) error {
	redial.Allow(w.config.Host, w.config.To) // no backoff is necessary: the Writer makes one dial at a time
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialCtx = network.WithAllowLimitedConn(dialCtx, "small messages")
	stream, err := w.config.Host.NewStream(dialCtx, w.config.To, w.config.Protocol)
	if err != nil {
		return err
	}
	w.stream, w.encode = stream, w.config.NewEncoder()
	w.stop = context.AfterFunc(ctx, func() { _ = stream.Reset() })
	return nil
}

// write writes a message. If that fails, write drops the stream, since part of the message may have been sent.
func (w *Writer[M]) write(m proto.Message) error {
	err := w.stream.SetWriteDeadline(time.Now().Add(w.config.Timeout))
	if err == nil {
		err = pbio.NewDelimitedWriter(w.stream).WriteMsg(m)
	}
	if err != nil {
		w.drop()
	}
	return err
}

func (w *Writer[M]) drop() {
	if w.stream != nil {
		w.stop()
		_ = w.stream.Reset()
		w.stream = nil
	}
}
