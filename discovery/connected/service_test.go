package connected

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// newService returns a Service of h that keeps it connected to its partners and is not started.
func newService(t *testing.T, h host.Host, partners ...p2ppeer.ID) *Service {
	t.Helper()
	s, err := New(t.Context(), h, Config{
		Member:    func(p2ppeer.ID) error { return errors.New("not probed") },
		Meet:      func(context.Context) {},
		Introduce: func(context.Context) error { return nil },
		Locate:    func(context.Context, p2ppeer.ID) error { return nil },
		RetryMin:  time.Second, RetryMax: time.Second, DialTimeout: time.Second,
		Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.KeepPartners(func() map[p2ppeer.ID]time.Duration {
		all := make(map[p2ppeer.ID]time.Duration)
		for _, id := range partners {
			all[id] = 0
		}
		return all
	}, func(p2ppeer.ID) {})
	t.Cleanup(func() { s.Close() })
	return s
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = time.Minute

func newHost(t *testing.T, options ...libp2p.Option) host.Host {
	t.Helper()
	h, err := libp2p.New(append(options, libp2p.Muxer(yamux.ID, Counting(yamux.DefaultTransport)), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.DisableMetrics())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// A wire forwards connections to a host until hush is called. Existing connections then stop
// forwarding data, and neither end is notified.
type wire struct {
	net.Listener
	to string

	mu     sync.Mutex
	ends   []net.Conn
	silent []bool // by end
	served sync.WaitGroup
}

func newWire(t *testing.T, to host.Host) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, address, err := manet.DialArgs(to.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: address}
	w.served.Go(w.serve)
	t.Cleanup(func() {
		w.Close()
		w.mu.Lock()
		for _, c := range w.ends {
			c.Close()
		}
		w.mu.Unlock()
		w.served.Wait()
	})
	return w
}

func (w *wire) serve() {
	for {
		in, err := w.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil {
			in.Close()
			continue
		}
		w.mu.Lock()
		i := len(w.ends)
		w.ends, w.silent = append(w.ends, in, out), append(w.silent, false, false)
		w.mu.Unlock()
		w.served.Go(func() { w.carry(in, out, i) })
		w.served.Go(func() { w.carry(out, in, i+1) })
	}
}

// carry returns when one side has closed.
func (w *wire) carry(dst, src net.Conn, i int) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := src.Read(buffer)
		w.mu.Lock()
		silent := w.silent[i]
		w.mu.Unlock()
		if err != nil {
			if !silent {
				dst.Close()
			}
			return
		}
		if !silent {
			dst.Write(buffer[:n])
		}
	}
}

// hush silences the existing connections.
func (w *wire) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.silent {
		w.silent[i] = true
	}
}

// TestSilentConnectionIsReplaced checks that a silent connection is replaced, without
// notification of either end.
func TestSilentConnectionIsReplaced(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	a, b := newHost(t), newHost(t)
	w := newWire(t, b)
	through, err := manet.FromNetAddr(w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	a.Peerstore().AddAddrs(b.ID(), []ma.Multiaddr{through}, peerstore.PermanentAddrTTL)
	back := make(chan p2ppeer.ID, 16)
	located := make(chan p2ppeer.ID, 16)
	s := newService(t, a, b.ID())
	s.config.Locate = func(_ context.Context, id p2ppeer.ID) error { located <- id; return nil }
	s.KeepPartners(s.partners, func(id p2ppeer.ID) { back <- id })
	s.Start()
	if err := a.Connect(t.Context(), p2ppeer.AddrInfo{ID: b.ID()}); err != nil {
		t.Fatal(err)
	}
	first, closed := a.Network().ConnsToPeer(b.ID())[0], make(chan struct{})
	a.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if c == first {
			close(closed)
		}
	}})
	w.hush()
	select {
	case <-back:
	case <-time.After(deadline):
		t.Fatal("the peer did not reconnect in time")
	}
	select {
	case <-closed:
	case <-time.After(deadline):
		t.Fatal("the silent connection was not closed")
	}
	now := a.Network().ConnsToPeer(b.ID())
	if len(now) == 0 {
		t.Fatal("the peers are not connected")
	}
	if err := sendPing(t.Context(), now[0]); err != nil {
		t.Errorf("the new connection does not work: %v", err)
	}
}

// TestResetProbeCountsAsAnswer checks a reset probe, since libp2p answers only two at a time.
func TestResetProbeCountsAsAnswer(t *testing.T) {
	a, b := newHost(t), newHost(t)
	b.SetStreamHandler(ping.ID, func(s network.Stream) { s.Reset() })
	if err := a.Connect(t.Context(), *host.InfoFromHost(b)); err != nil {
		t.Fatal(err)
	}
	c := a.Network().ConnsToPeer(b.ID())[0]
	s := newService(t, a)
	seen := map[p2ppeer.ID]partnerState{b.ID(): {conns: []connState{{id: c.ID()}}}}
	for now := time.Unix(1000, 0); now.Before(time.Unix(1020, 0)); now = now.Add(probePeriod) {
		out := s.watch.decide(now, seen, nil)
		if len(out.drop) > 0 {
			t.Fatal("a connection that works is dropped")
		}
		for range out.probe {
			s.probe(t.Context(), c)
		}
	}
	if err := sendPing(t.Context(), c); err == nil {
		t.Error("the stream of the probe was not reset")
	}
	c.Close()
	p := s.watch.peers[b.ID()].conns[c.ID()]
	p.waiting = true
	if s.probe(t.Context(), c); !p.waiting {
		t.Error("a closed connection has answered")
	}
}

// TestV3SilentBusyConnectionIsDropped uses a busy connection on which each probe waits for longer
// than the interval between probes.
func TestV3SilentBusyConnectionIsDropped(t *testing.T) {
	// b has no limits: to libp2p, a question lasts until a moment after ended, so that a third one might be
	// refused.
	a, b := newHost(t), newHost(t, libp2p.ResourceManager(&network.NullResourceManager{}))
	began, ended := make(chan struct{}), make(chan struct{})
	tell := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		case <-t.Context().Done():
		}
	}
	b.SetStreamHandler(ping.ID, func(s network.Stream) {
		io.ReadFull(s, make([]byte, ping.PingSize))
		tell(began)
		io.Copy(io.Discard, s) // never answered
		s.Reset()
		tell(ended)
	})
	w := newWire(t, b)
	through, err := manet.FromNetAddr(w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Connect(t.Context(), p2ppeer.AddrInfo{ID: b.ID(), Addrs: []ma.Multiaddr{through}}); err != nil {
		t.Fatal(err)
	}
	c := a.Network().ConnsToPeer(b.ID())[0]
	part, read := []byte("some of a file"), make(chan struct{})
	a.SetStreamHandler("/file", func(s network.Stream) {
		defer s.Reset()
		for buf := make([]byte, len(part)); ; tell(read) {
			if _, err := io.ReadFull(s, buf); err != nil {
				return
			}
		}
	})
	file, err := b.NewStream(t.Context(), a.ID(), "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Reset()
	s := newService(t, a, b.ID())
	await := func(c chan struct{}, what string) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(deadline):
			t.Fatal(what)
		}
	}
	now, questions := time.Unix(1000, 0), 0
	state := func() *conn { return s.watch.peers[b.ID()].conns[c.ID()] }
	var probed time.Time
	for questions < 8 {
		before := arrived(c)
		if _, err := file.Write(part); err != nil {
			t.Fatal(err)
		}
		if await(read, "the bytes do not arrive"); arrived(c) == before {
			t.Fatal("arrived bytes are not counted")
		}
		now = now.Add(checkEvery)
		s.check(now)
		if state() == nil {
			t.Fatal("a connection over which bytes arrive is dropped")
		}
		if !probed.IsZero() && state().probed != probed {
			await(began, "no probe was sent")
			if questions++; questions > 1 {
				await(ended, "the previous probe did not end")
			}
		}
		probed = state().probed
	}
	w.hush()
	// Some bytes may have arrived since the last check, and count at the next one.
	for most := now.Add(probePeriod + leastSilence + 3*checkEvery); state() != nil; s.check(now) {
		if now = now.Add(checkEvery); now.After(most) {
			t.Fatal("the connection was not closed long after it fell silent")
		}
	}
}

// TestErrorsThatCountAsAnswer checks that an error counts as the answer to a probe only if the other end has
// sent it, or if the probe was never sent.
func TestErrorsThatCountAsAnswer(t *testing.T) {
	a, b := newHost(t), newHost(t)
	if err := a.Connect(t.Context(), *host.InfoFromHost(b)); err != nil {
		t.Fatal(err)
	}
	c := a.Network().ConnsToPeer(b.ID())[0]
	b.RemoveStreamHandler(ping.ID)
	if err := sendPing(t.Context(), c); err == nil || !countsAsAnswer(err) {
		t.Errorf("peer without the probe protocol: %v", err)
	}
	for { // other streams use up the peer's limit
		stream, err := c.NewStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Reset()
		if stream.SetProtocol(ping.ID) != nil {
			break
		}
	}
	if err := sendPing(t.Context(), c); !errors.Is(err, network.ErrResourceLimitExceeded) || !countsAsAnswer(err) {
		t.Errorf("when the probe cannot be sent: %v", err)
	}
	for _, err := range []error{&network.StreamError{}, context.DeadlineExceeded, errors.New("connection write timeout")} {
		if countsAsAnswer(fmt.Errorf("open a stream: %w", err)) {
			t.Errorf("the error %v counts as an answer to the probe", err)
		}
	}
}
