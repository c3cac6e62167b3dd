package membership

import (
	"context"
	"net"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// SecurityID is the protocol ID of TLS with an exchange of proofs. Over TCP and through relays, members of a
// private network support no other security protocol. Other peers support it as their last choice, to learn why
// they are refused.
const SecurityID = "/p2pmpi/member-tls/1.0.0"

// SecureTransport is TLS followed by an exchange of proofs.
type SecureTransport struct {
	*libp2ptls.Transport
	gate *Gate
	self p2ppeer.ID
}

var _ sec.SecureTransport = SecureTransport{}

// TLS is a constructor for libp2p.Security, for this peer's host and for the additional hosts that libp2p
// creates.
func (g *Gate) TLS(id protocol.ID, key crypto.PrivKey, muxers []upgrader.StreamMuxer) (SecureTransport, error) {
	t, err := libp2ptls.New(id, key, muxers)
	if err != nil {
		return SecureTransport{}, err
	}
	self, err := p2ppeer.IDFromPrivateKey(key)
	return SecureTransport{t, g, self}, err
}

// SecureInbound implements sec.SecureTransport.
func (t SecureTransport) SecureInbound(ctx context.Context, insecure net.Conn, p p2ppeer.ID) (sec.SecureConn, error) {
	return t.meet(ctx, network.DirInbound, insecure, p, t.Transport.SecureInbound, t.gate.answer)
}

// SecureOutbound implements sec.SecureTransport.
func (t SecureTransport) SecureOutbound(ctx context.Context, insecure net.Conn, p p2ppeer.ID) (sec.SecureConn, error) {
	return t.meet(ctx, network.DirOutbound, insecure, p, t.Transport.SecureOutbound, t.gate.ask)
}

func (t SecureTransport) meet(ctx context.Context, dir network.Direction, insecure net.Conn, p p2ppeer.ID,
	handshake func(context.Context, net.Conn, p2ppeer.ID) (sec.SecureConn, error),
	exchange func(p pipe, self, peer p2ppeer.ID) error,
) (sec.SecureConn, error) {
	c, err := handshake(ctx, insecure, p)
	if err != nil {
		return nil, err
	}
	leave, err := t.gate.enter(c.RemotePeer(), dir)
	if err != nil {
		c.Close()
		return nil, err
	}
	defer leave()
	stop := context.AfterFunc(ctx, func() { insecure.Close() })
	defer stop()
	if err := exchange(c, t.self, c.RemotePeer()); err != nil {
		t.gate.ended(c.RemotePeer(), dir, err)
		c.Close()
		return nil, err
	}
	return c, nil
}
