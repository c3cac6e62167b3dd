package loopback

import (
	"net"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

// shared is the common state of the two ends of a stream.
type shared struct{ reset atomic.Bool }

// stream is one end of a stream to the host itself. It implements network.Stream.
type stream struct {
	*net.UnixConn
	host      *Host
	protocol  protocol.ID
	direction network.Direction
	shared    *shared
	forget    func() bool // the end of the host then no longer resets the stream
}

// Read implements network.Stream. As on a network, reading from a stream that was reset returns an error
// other than io.EOF.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.UnixConn.Read(b)
	if err != nil && s.shared.reset.Load() {
		err = network.ErrReset // in place of the socket's error
	}
	return n, err
}

func (s *stream) Close() error {
	s.forget()
	return s.UnixConn.Close()
}

func (s *stream) Reset() error {
	s.shared.reset.Store(true)
	return s.Close()
}

func (s *stream) ResetWithError(network.StreamErrorCode) error { return s.Reset() }
func (s *stream) ID() string                                   { return "loopback " + string(s.protocol) }
func (s *stream) Protocol() protocol.ID                        { return s.protocol }

func (s *stream) SetProtocol(id protocol.ID) error {
	s.protocol = id
	return nil
}

func (s *stream) Stat() network.Stats        { return network.Stats{Direction: s.direction} }
func (s *stream) Scope() network.StreamScope { return &network.NullScope{} }
func (s *stream) Conn() network.Conn         { return conn{host: s.host} }

// conn is the connection of a host to itself. It implements only the methods below, so it cannot be closed.
type conn struct {
	network.Conn
	host *Host
}

func (c conn) LocalPeer() p2ppeer.ID         { return c.host.ID() }
func (c conn) RemotePeer() p2ppeer.ID        { return c.host.ID() }
func (c conn) LocalMultiaddr() ma.Multiaddr  { return unspecified }
func (c conn) RemoteMultiaddr() ma.Multiaddr { return unspecified }
func (c conn) ID() string                    { return "loopback" }
func (c conn) Stat() network.ConnStats       { return network.ConnStats{} }
func (c conn) IsClosed() bool                { return false }

var unspecified = ma.StringCast("/ip4/127.0.0.1/tcp/0")
