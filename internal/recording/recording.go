package recording

import (
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"
)

// Of returns the encoding of messages on a stream.
func Of(t testing.TB, messages ...proto.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range messages {
		if err := pbio.NewDelimitedWriter(&b).WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// New returns a stream on which the peer from has sent exactly the bytes sent. Writes to it are discarded.
func New(from p2ppeer.ID, sent []byte) network.Stream {
	return stream{conn: conn{from: from}, sent: bytes.NewReader(sent)}
}

type stream struct {
	network.Stream // nil, because the other methods are not called
	conn           conn
	sent           *bytes.Reader
}

func (s stream) Read(b []byte) (int, error)                   { return s.sent.Read(b) }
func (s stream) Write(b []byte) (int, error)                  { return len(b), nil }
func (s stream) Close() error                                 { return nil }
func (s stream) Reset() error                                 { return nil }
func (s stream) ResetWithError(network.StreamErrorCode) error { return nil }
func (s stream) SetDeadline(time.Time) error                  { return nil }
func (s stream) SetReadDeadline(time.Time) error              { return nil }
func (s stream) SetWriteDeadline(time.Time) error             { return nil }
func (s stream) Conn() network.Conn                           { return s.conn }

type conn struct {
	network.Conn // nil, because the other methods are not called
	from         p2ppeer.ID
}

var loopback = ma.StringCast("/ip4/127.0.0.1/tcp/9")

func (c conn) ID() string                    { return "recorded" }
func (c conn) RemotePeer() p2ppeer.ID        { return c.from }
func (c conn) LocalMultiaddr() ma.Multiaddr  { return loopback }
func (c conn) RemoteMultiaddr() ma.Multiaddr { return loopback }
