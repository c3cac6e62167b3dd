package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"github.com/libp2p/go-libp2p/core/transport"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
)

// streamProtocol is the protocol of an exchange of proofs on a stream: on the first stream of a QUIC connection,
// and between members after the renewal of a token.
const streamProtocol = "/p2pmpi/member/1.0.0"

// QUICTransport is a QUIC transport whose connections begin with an exchange of proofs. libp2p receives
// only connections whose exchange has succeeded.
type QUICTransport struct {
	transport.Transport
	gate *Gate
	self p2ppeer.ID
}

// QUIC is a constructor for libp2p.Transport.
func (g *Gate) QUIC(key crypto.PrivKey, conns *quicreuse.ConnManager, psk pnet.PSK, gater connmgr.ConnectionGater, resources network.ResourceManager) (QUICTransport, error) {
	t, err := quic.NewTransport(key, conns, psk, gater, resources)
	if err != nil {
		return QUICTransport{}, err
	}
	self, err := p2ppeer.IDFromPrivateKey(key)
	return QUICTransport{t, g, self}, err
}

// ListenOrder returns the order of the underlying QUIC transport.
func (t QUICTransport) ListenOrder() int {
	if o, ok := t.Transport.(interface{ ListenOrder() int }); ok {
		return o.ListenOrder()
	}
	return 0
}

// Close closes the transport.
func (t QUICTransport) Close() error {
	if c, ok := t.Transport.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Dial implements transport.Transport. During hole punching both peers dial. Then the QUIC server answers the
// exchange in Dial, too.
func (t QUICTransport) Dial(ctx context.Context, addr ma.Multiaddr, p p2ppeer.ID) (transport.CapableConn, error) {
	c, err := t.Transport.Dial(ctx, addr, p)
	if err != nil {
		return nil, err
	}
	meet := t.ask
	if both, client, _ := network.GetSimultaneousConnect(ctx); both && !client {
		meet = t.answer
	}
	if err := t.exchange(ctx, network.DirOutbound, c, meet); err != nil {
		return nil, err
	}
	return c, nil
}

// exchange exchanges proofs on c, and closes c on failure.
func (t QUICTransport) exchange(ctx context.Context, dir network.Direction, c transport.CapableConn, exchange func(context.Context, transport.CapableConn) error) error {
	leave, err := t.gate.enter(c.RemotePeer(), dir)
	if err != nil {
		c.CloseWithError(network.ConnGated)
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.CloseWithError(network.ConnGated) })
	err = exchange(ctx, c)
	if !stop() && err == nil {
		return context.Cause(ctx) // too late: the connection is closed
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
		}
		t.gate.ended(c.RemotePeer(), dir, err)
		c.CloseWithError(network.ConnGated)
	}
	return err
}

// ask opens the stream for the exchange and shows the proof first.
func (t QUICTransport) ask(ctx context.Context, c transport.CapableConn) error {
	return t.open(ctx, c, func(p pipe) error { return t.gate.ask(p, t.self, c.RemotePeer()) })
}

func (t QUICTransport) open(ctx context.Context, c transport.CapableConn, exchange func(pipe) error) error {
	s, err := c.OpenStream(ctx)
	if err != nil {
		return fmt.Errorf("open a stream for the tokens: %w", err)
	}
	defer s.Close()
	s.SetDeadline(time.Now().Add(exchangeTimeout))
	if err := mss.SelectProtoOrFail(streamProtocol, s); err != nil {
		return fmt.Errorf("it does not support private networks: %w", err)
	}
	return exchange(s)
}

// answer waits for the stream for the exchange, which is the first stream of a member. If the first stream has
// another protocol, as from a peer of an open network, answer tells the peer that it needs a token.
func (t QUICTransport) answer(ctx context.Context, c transport.CapableConn) error {
	s, err := c.AcceptStream()
	if err != nil {
		return fmt.Errorf("wait for the stream for the tokens: %w", err)
	}
	defer s.Close()
	s.SetDeadline(time.Now().Add(exchangeTimeout))
	muxer := mss.NewMultistreamMuxer[string]()
	muxer.AddHandler(streamProtocol, nil)
	if _, _, err = muxer.Negotiate(s); err != nil {
		s.Reset()
		return t.open(ctx, c, func(p pipe) error { return t.gate.requestToken(p, c.RemotePeer()) })
	}
	return t.gate.answer(s, t.self, c.RemotePeer())
}

// Listen implements transport.Transport.
func (t QUICTransport) Listen(addr ma.Multiaddr) (transport.Listener, error) {
	inner, err := t.Transport.Listen(addr)
	if err != nil {
		return nil, err
	}
	l := &quicListener{Listener: inner, transport: t, admitted: make(chan transport.CapableConn)}
	l.life, l.end = context.WithCancelCause(context.Background())
	l.running.Go(l.run) // ends with the listener
	return l, nil
}

// A quicListener accepts only connections of members.
type quicListener struct {
	transport.Listener
	transport QUICTransport
	admitted  chan transport.CapableConn
	life      context.Context // ends with the listener
	end       context.CancelCauseFunc
	running   sync.WaitGroup
}

func (l *quicListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.end(err)
			return
		}
		l.running.Go(func() { l.admit(c) }) // ends within exchangeTimeout, or with the listener
	}
}

func (l *quicListener) admit(c transport.CapableConn) {
	if l.transport.exchange(l.life, network.DirInbound, c, l.transport.answer) != nil {
		return
	}
	select {
	case l.admitted <- c:
	case <-l.life.Done():
		c.CloseWithError(network.ConnShutdown)
	}
}

func (l *quicListener) Accept() (transport.CapableConn, error) {
	select {
	case c := <-l.admitted:
		return c, nil
	case <-l.life.Done():
		return nil, context.Cause(l.life)
	}
}

func (l *quicListener) Close() error {
	err := l.Listener.Close()
	l.end(errors.New("listener closed"))
	l.running.Wait()
	return err
}
