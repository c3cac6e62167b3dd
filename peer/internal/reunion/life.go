package reunion

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/quic-go/quic-go"
)

// An answer waits behind all else that goes over its connection, for long where a file goes
// over a slow link. So what arrives is counted; and so is what had to wait for room before it
// could be sent, since there is room again only when the other end, or the relay of a circuit, has
// taken what was sent before.

// waited is how long a write takes that had to wait for room.
const waited = 50 * time.Millisecond

// Counting returns a multiplexer that works as m does, and whose connections count what
// arrives and is acknowledged, for a Service.
func Counting(m network.Multiplexer) network.Multiplexer { return counting{m} }

type counting struct{ network.Multiplexer }

func (m counting) NewConn(c net.Conn, isServer bool, scope network.PeerScope) (network.MuxedConn, error) {
	counts := &meter{Conn: c}
	muxed, err := m.Multiplexer.NewConn(counts, isServer, scope)
	if err != nil {
		return nil, err
	}
	return counted{muxed, counts}, nil
}

// A meter counts the bytes that arrive over a connection, and those that had to wait.
type meter struct {
	net.Conn
	arrived atomic.Uint64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.arrived.Add(uint64(n))
	return n, err
}

func (m *meter) Write(b []byte) (int, error) {
	begun := time.Now()
	n, err := m.Conn.Write(b)
	if time.Since(begun) >= waited {
		m.arrived.Add(uint64(n))
	}
	return n, err
}

// A counted connection has a meter below.
type counted struct {
	network.MuxedConn
	meter *meter
}

// As implements network.MuxedConn; libp2p hands it out through its own layers.
func (c counted) As(target any) bool {
	if t, ok := target.(**meter); ok {
		*t = c.meter
		return true
	}
	return c.MuxedConn.As(target)
}

// arrived returns a number that grows when something arrives over a connection or is acknowledged;
// always 0: that is not known.
func arrived(c network.Conn) uint64 {
	var m *meter
	if c.As(&m) {
		return m.arrived.Load()
	}
	var q *quic.Conn
	if c.As(&q) {
		return q.ConnectionStats().PacketsReceived // also acknowledgements
	}
	return 0
}
