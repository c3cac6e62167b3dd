package connected

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/quic-go/quic-go"
)

// An answer waits behind all other traffic of its connection. That takes long if a file is sent over a slow
// link. Therefore received bytes are counted, and also sent bytes that had to wait for buffer space. Space
// becomes free only after the other end, or the relay of a circuit, has received earlier bytes.

// minWait is the minimum duration of a write that counts as having waited for buffer space.
const minWait = 50 * time.Millisecond

// Counting returns a multiplexer that works like m, and whose connections count received and acknowledged
// bytes for a Service.
func Counting(m network.Multiplexer) network.Multiplexer { return countingMuxer{m} }

type countingMuxer struct{ network.Multiplexer }

func (m countingMuxer) NewConn(c net.Conn, isServer bool, scope network.PeerScope) (network.MuxedConn, error) {
	counts := &meter{Conn: c}
	muxed, err := m.Multiplexer.NewConn(counts, isServer, scope)
	if err != nil {
		return nil, err
	}
	return countedConn{muxed, counts}, nil
}

// A meter counts the bytes received over a connection, and the sent bytes that had to wait.
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
	if time.Since(begun) >= minWait {
		m.arrived.Add(uint64(n))
	}
	return n, err
}

// A countedConn has a meter as its transport.
type countedConn struct {
	network.MuxedConn
	meter *meter
}

// As implements network.MuxedConn. libp2p passes the call on to it.
func (c countedConn) As(target any) bool {
	if t, ok := target.(**meter); ok {
		*t = c.meter
		return true
	}
	return c.MuxedConn.As(target)
}

// arrived returns a number that grows when bytes arrive over a connection or are acknowledged. The number is
// always 0 if they are not counted.
func arrived(c network.Conn) uint64 {
	var m *meter
	if c.As(&m) {
		return m.arrived.Load()
	}
	var q *quic.Conn
	if c.As(&q) {
		return q.ConnectionStats().PacketsReceived // includes acknowledgements
	}
	return 0
}
