package relay

import (
	"context"
	"errors"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// A meteredHost limits the bytes and the time of the streams of libp2p's relay. When one stream of a circuit
// reaches a limit, the relay resets both.
type meteredHost struct {
	host.Host
	limits Limits
}

func (h meteredHost) SetStreamHandler(id protocol.ID, handler network.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s network.Stream) { handler(h.meter(s)) })
}

func (h meteredHost) NewStream(ctx context.Context, p p2ppeer.ID, ids ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, p, ids...)
	if err != nil {
		return nil, err
	}
	return h.meter(s), nil
}

func (h meteredHost) meter(s network.Stream) network.Stream {
	return &metered{Stream: s, left: h.limits.Bytes, limited: h.limits.Bytes > 0, time: h.limits.Time}
}

// metered is one end of a circuit at the relay. Only one goroutine reads it at a time.
type metered struct {
	network.Stream
	limited bool
	left    int64
	time    time.Duration // from the end of the handshake; 0 for no limit
}

var errSpent = errors.New("the circuit has reached its data limit")

func (m *metered) Read(b []byte) (int, error) {
	if m.limited && m.left <= 0 {
		return 0, errSpent
	}
	n, err := m.Stream.Read(b)
	m.left -= int64(n)
	return n, err
}

// SetDeadline implements network.Stream. The relay clears its own deadline when a circuit begins; metered
// then sets the end of the circuit's time.
func (m *metered) SetDeadline(t time.Time) error { return m.Stream.SetDeadline(m.bound(t)) }

func (m *metered) SetReadDeadline(t time.Time) error { return m.Stream.SetReadDeadline(m.bound(t)) }

func (m *metered) bound(t time.Time) time.Time {
	if t.IsZero() && m.time > 0 {
		return time.Now().Add(m.time)
	}
	return t
}
