package entrance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// An Entrance listens for direct connections, and knows which tokens are expected.
type Entrance struct {
	listener net.Listener
	port     uint16
	any      bool // true if the listener accepts on all addresses of this machine
	mapped   func(uint16) (netip.AddrPort, bool)

	serving sync.WaitGroup

	mu       sync.Mutex
	expected map[half]*expectation
	pending  pendingConns
}

const (
	tokenSize = 32

	// directTimeout bounds the attempt to connect directly before the peers bridge their processes.
	directTimeout = time.Second

	// expectTimeout is how long a token is valid. The asking peer gives up earlier.
	expectTimeout = 2 * directTimeout

	maxAddresses = 8 // addresses of one peer that are tried
)

type half [tokenSize / 2]byte

// An expectation describes an expected connection.
type expectation struct {
	reply   half
	arrived func(net.Conn) // takes over the connection
}

// Listen listens on address, host:port, and calls Serve.
func Listen(ctx context.Context, address string, mapped func(uint16) (netip.AddrPort, bool)) (*Entrance, error) {
	l, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for direct connections: %w", err)
	}
	return Serve(ctx, l, mapped), nil
}

// Serve accepts connections on l, which listens on TCP, and takes ownership of l. mapped returns the
// external address if a router forwards the port. mapped may be nil. When ctx ends, so do all connections that
// have not been handed over.
func Serve(ctx context.Context, l net.Listener, mapped func(uint16) (netip.AddrPort, bool)) *Entrance {
	at := l.Addr().(*net.TCPAddr)
	e := &Entrance{
		listener: l, port: uint16(at.Port), any: at.IP.IsUnspecified(),
		expected: make(map[half]*expectation),
		mapped:   mapped,
	}
	e.externalAddress()                    // requests the port mapping before a job needs it
	e.serving.Go(func() { e.accept(ctx) }) // ends with the listener
	return e
}

// keepAlive applies to connections between processes: a connection that is cut silently breaks within about
// ten seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}

// Close stops listening. It returns when all connections that have not been handed over are closed: at once
// if the context of Serve has ended, otherwise within directTimeout.
func (e *Entrance) Close() {
	e.listener.Close()
	e.serving.Wait()
}

func (e *Entrance) accept(ctx context.Context) {
	for {
		conn, err := e.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, which is temporary
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
				return
			}
		}
		e.mu.Lock()
		e.pending.add(conn)
		e.mu.Unlock()
		e.serving.Go(func() { e.serve(ctx, conn) }) // ends within directTimeout
	}
}

// serve reads a new connection's token and, if it is expected, replies and hands over the connection.
func (e *Entrance) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetDeadline(time.Now().Add(directTimeout))
	var first half
	_, err := io.ReadFull(conn, first[:])
	e.mu.Lock()
	e.pending.remove(conn)
	var g *expectation
	if err == nil {
		g = e.expected[first]
		delete(e.expected, first)
	}
	e.mu.Unlock()
	if g == nil {
		conn.Close()
		return
	}
	if _, err := conn.Write(g.reply[:]); err != nil {
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{})
	g.arrived(conn)
}

// NewToken returns a new random token.
func NewToken() []byte {
	token := make([]byte, tokenSize)
	rand.Read(token) // never fails
	return token
}

// Expect makes a token valid until ctx ends or expectTimeout has passed. arrived takes over the connection.
// Expect returns an error if the token has the wrong size or is already expected.
func (e *Entrance) Expect(ctx context.Context, token []byte, arrived func(net.Conn)) error {
	if len(token) != tokenSize {
		return fmt.Errorf("token of %d bytes", len(token))
	}
	first, g := half(token[:tokenSize/2]), &expectation{half(token[tokenSize/2:]), arrived}
	e.mu.Lock()
	_, known := e.expected[first]
	if !known {
		e.expected[first] = g
	}
	e.mu.Unlock()
	if known {
		return errors.New("the token belongs to another channel")
	}
	ctx, cancel := context.WithTimeout(ctx, expectTimeout)
	context.AfterFunc(ctx, func() {
		cancel()
		e.mu.Lock()
		if e.expected[first] == g {
			delete(e.expected, first)
		}
		e.mu.Unlock()
	})
	return nil
}

// Addresses returns the addresses, host:port, at which the peer at the other end of c may reach the
// entrance. An address mapped by a router comes first, then the address by which that peer has reached this
// one, then this peer's own. Loopback addresses are only for peers that connected by one: others would
// reach themselves.
func (e *Entrance) Addresses(c network.ConnMultiaddrs, own []ma.Multiaddr) []string {
	if !e.any {
		return []string{e.listener.Addr().String()}
	}
	here := manet.IsIPLoopback(c.LocalMultiaddr())
	seen := make(map[string]bool)
	out := e.externalAddress()
	for _, a := range append([]ma.Multiaddr{c.LocalMultiaddr()}, own...) {
		ip, err := manet.ToIP(a)
		if _, relay := a.ValueForProtocol(ma.P_CIRCUIT); relay == nil || err != nil || ip.IsUnspecified() || ip.IsLoopback() && !here {
			continue
		}
		address := net.JoinHostPort(ip.String(), strconv.Itoa(int(e.port)))
		if !seen[address] && len(out) < maxAddresses {
			seen[address] = true
			out = append(out, address)
		}
	}
	return out
}

// externalAddress returns the entrance's external address, if a router maps one.
func (e *Entrance) externalAddress() []string {
	if e.mapped == nil || !e.any {
		return nil
	}
	at, ok := e.mapped(e.port)
	if !ok {
		return nil
	}
	return []string{at.String()}
}

// Connect connects to the first of the addresses, host:port, that answers with the rest of the token within
// directTimeout. Another peer names the addresses, and Connect skips those for which may returns false.
func Connect(ctx context.Context, addresses []string, may func(netip.Addr) bool, token []byte) (*net.TCPConn, error) {
	addresses = addresses[:min(len(addresses), maxAddresses)]
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool {
		at, err := netip.ParseAddrPort(a) // host names are rejected, since they would be resolved
		return err != nil || !may(at.Addr())
	})
	if len(addresses) == 0 {
		return nil, errNoAddress
	}
	ctx, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	type result struct {
		conn *net.TCPConn
		err  error
	}
	results := make(chan result)
	for _, address := range addresses {
		go func() { // ends with ctx at the latest
			conn, err := connectAt(ctx, address, token)
			results <- result{conn, err}
		}()
	}
	var found result
	for range addresses {
		r := <-results
		switch {
		case found.conn == nil && r.conn != nil:
			found = r
			cancel()
		case r.conn != nil:
			r.conn.Close()
		case found.conn == nil && found.err == nil:
			found.err = r.err
		}
	}
	return found.conn, found.err
}

// errNoAddress reports that the other peer accepts no direct connection, or named only addresses that this
// peer must not dial.
var errNoAddress = errors.New("the other peer has no address for direct connections")

// ErrRejected reports that the listener does not know the token. It may be another machine with the same
// private address, or the other peer, whose part of the job has ended.
var ErrRejected = errors.New("rejected")

func connectAt(ctx context.Context, address string, token []byte) (*net.TCPConn, error) {
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer stop()
	var reply half
	if _, err = conn.Write(token[:tokenSize/2]); err == nil {
		_, err = io.ReadFull(conn, reply[:])
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = ErrRejected
	}
	if err == nil && reply != half(token[tokenSize/2:]) {
		err = errors.New("another program answers")
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if !stop() {
		conn.Close()
		return nil, context.Cause(ctx)
	}
	conn.SetDeadline(time.Time{})
	return conn.(*net.TCPConn), nil
}
