package entrance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

func newTestEntrance(t testing.TB) (*Entrance, context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e, err := Listen(ctx, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); e.Close() })
	return e, ctx
}

func (e *Entrance) address() string { return e.listener.Addr().String() }

// here accepts the addresses of peers in tests.
func here(a netip.Addr) bool { return a.IsLoopback() }

func nowhere(netip.Addr) bool { return false }

// awaits makes e expect a connection with a new token.
func (e *Entrance) awaits(ctx context.Context, arrived func(net.Conn)) []byte {
	token := NewToken()
	if err := e.Expect(ctx, token, arrived); err != nil {
		panic(err)
	}
	return token
}

func TestTokenIsAcceptedOnce(t *testing.T) {
	e, ctx := newTestEntrance(t)
	came := make(chan net.Conn, 1)
	token := e.awaits(ctx, func(c net.Conn) { came <- c })
	conn, err := Connect(ctx, []string{e.address()}, here, token)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	inside := <-came
	inside.Write([]byte("hello"))
	inside.Close()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if again, err := Connect(ctx, []string{e.address()}, here, token); err == nil {
		again.Close()
		t.Error("the token was accepted twice")
	}
}

func TestConnectionsWithoutATokenAreRefused(t *testing.T) {
	e, ctx := newTestEntrance(t)
	token := e.awaits(ctx, func(net.Conn) { t.Error("a connection without a valid token was accepted") })
	gone, cancel := context.WithCancel(ctx)
	late := e.awaits(gone, func(net.Conn) { t.Error("a connection was accepted after its token had expired") })
	cancel()
	for e.expects(late) {
	}
	wrong := bytes.Clone(token)
	wrong[0] ^= 1
	for name, shown := range map[string][]byte{
		"another token": wrong, "expired token": late, "halves exchanged": append(token[tokenSize/2:], token[:tokenSize/2]...),
	} {
		if conn, err := Connect(ctx, []string{e.address()}, here, shown); err == nil {
			conn.Close()
			t.Errorf("%s: connected", name)
		} else if !errors.Is(err, ErrRejected) {
			t.Errorf("%s: %v, want ErrRejected", name, err)
		}
	}
}

// expects reports whether a token is valid.
func (e *Entrance) expects(token []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expected[half(token[:tokenSize/2])] != nil
}

// TestO4IdleConnectionsDoNotDelayExpectedOnes checks that an expected connection is accepted at once, however
// many connections are idle, and that the idle ones are closed.
func TestO4IdleConnectionsDoNotDelayExpectedOnes(t *testing.T) {
	e, ctx := newTestEntrance(t)
	var strangers []net.Conn
	for range 2 * maxPending {
		c, err := net.Dial("tcp", e.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		strangers = append(strangers, c)
	}
	token := e.awaits(ctx, func(c net.Conn) { c.Close() })
	conn, err := Connect(ctx, []string{e.address()}, here, token)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	e.mu.Lock()
	if n := len(e.pending); n > maxPending {
		t.Errorf("%d strangers are connected", n)
	}
	e.mu.Unlock()
	for _, c := range strangers {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("a connection without a token received data")
		}
	}
	e.mu.Lock()
	if n := len(e.pending); n > 0 {
		t.Errorf("%d connections without a token are still open", n)
	}
	e.mu.Unlock()
}

// TestDialSkipsWrongAddresses uses addresses of another machine, which answers differently or not at all, and of
// no machine. A hostile peer may name any address.
func TestDialSkipsWrongAddresses(t *testing.T) {
	e, ctx := newTestEntrance(t)
	other, _ := newTestEntrance(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	talker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		for {
			c, err := talker.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) // as long as an entrance's reply
			c.Close()
		}
	}()
	defer func() {
		talker.Close()
		<-talking
	}()
	wrong := []string{other.address(), mute.Addr().String(), talker.Addr().String(), "127.0.0.1:1", "localhost:80", "", "[::1%lo]:0"}
	token := e.awaits(ctx, func(c net.Conn) { c.Close() })
	conn, err := Connect(ctx, append(wrong, e.address()), here, token)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := Connect(ctx, wrong, here, token); err == nil {
		t.Error("connected to another program")
	}
	for what, addresses := range map[string][]string{"nowhere": nil, "forbidden address": {e.address()}} {
		if _, err := Connect(ctx, addresses, nowhere, token); !errors.Is(err, errNoAddress) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestInvalidTokens(t *testing.T) {
	e, ctx := newTestEntrance(t)
	token := e.awaits(ctx, func(c net.Conn) { c.Close() })
	never := func(net.Conn) { t.Error("a connection with an invalid token was accepted") }
	for what, bad := range map[string][]byte{"none": nil, "short": token[:3], "long": append(bytes.Clone(token), 0), "another's": token} {
		if err := e.Expect(ctx, bad, never); err == nil {
			t.Errorf("%s token: accepted", what)
		}
	}
	conn, err := Connect(ctx, []string{e.address()}, here, token)
	if err != nil {
		t.Fatalf("the earlier token: %v", err)
	}
	conn.Close()
}

func FuzzPreface(f *testing.F) {
	e, ctx := newTestEntrance(f)
	f.Add([]byte(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(make([]byte, tokenSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		e.awaits(ctx, func(c net.Conn) { c.Close(); t.Error("a connection without a valid token was accepted") })
		c, err := net.Dial("tcp", e.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(b)
		c.(*net.TCPConn).CloseWrite()
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			t.Error("a connection without a token received data")
		}
	})
}

// TestRouterMapsThePort simulates a router that maps the port after a while.
func TestRouterMapsThePort(t *testing.T) {
	outside := netip.MustParseAddrPort("11.0.1.1:5001")
	asked, leads := uint16(0), false
	ctx, cancel := context.WithCancel(t.Context())
	e, err := Listen(ctx, "0.0.0.0:0", func(port uint16) (netip.AddrPort, bool) {
		asked = port
		return outside, leads
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	defer cancel()
	if asked != e.port {
		t.Errorf("port %d was mapped before the first connection, want %d", asked, e.port)
	}
	own := ma.StringCast("/ip4/192.168.1.2/tcp/1")
	inside := fmt.Sprintf("192.168.1.2:%d", e.port)
	if got := e.Addresses(at{own}, nil); !slices.Equal(got, []string{inside}) {
		t.Errorf("without a router: %v", got)
	}
	leads = true
	if got := e.Addresses(at{own}, nil); !slices.Equal(got, []string{outside.String(), inside}) {
		t.Errorf("with a router: %v", got)
	}
}

// at is a connection received at a local address.
type at struct{ local ma.Multiaddr }

func (a at) LocalMultiaddr() ma.Multiaddr  { return a.local }
func (a at) RemoteMultiaddr() ma.Multiaddr { return a.local }
