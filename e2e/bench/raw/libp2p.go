package main

import (
	"context"
	"fmt"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
)

const protocolID = "/p2pmpi/bench/raw/1.0.0"

var (
	withTLS   = libp2p.Security(libp2ptls.ID, libp2ptls.New) // preferred by our peers
	withNoise = libp2p.Security(noise.ID, noise.New)
)

// newHost starts a host with the transport and multiplexer of our peers.
func newHost(options ...libp2p.Option) (host.Host, error) {
	return libp2p.New(append(options,
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics(),
	)...)
}

func listenLibp2p(security libp2p.Option) func(context.Context) (string, acceptor, error) {
	return func(context.Context) (string, acceptor, error) {
		h, err := newHost(security, libp2p.DisableRelay(), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
		if err != nil {
			return "", nil, err
		}
		return addressOf(h), acceptStream(h), nil
	}
}

func dialLibp2p(security libp2p.Option) func(context.Context, string) (connection, error) {
	return func(ctx context.Context, address string) (connection, error) {
		h, err := newHost(security, libp2p.DisableRelay(), libp2p.NoListenAddrs)
		if err != nil {
			return nil, err
		}
		return openStream(ctx, h, address)
	}
}

// acceptStream waits for the single expected stream. Its opener sends one byte, because libp2p does
// not announce a stream before data is written to it.
func acceptStream(h host.Host) acceptor {
	streams := make(chan network.Stream, 1)
	h.SetStreamHandler(protocolID, func(s network.Stream) {
		select {
		case streams <- s:
		default:
			s.Reset()
		}
	})
	return func() (connection, error) {
		s := <-streams
		_, err := s.Read(make([]byte, 1))
		return &stream{s, h}, err
	}
}

func openStream(ctx context.Context, h host.Host, address string) (connection, error) {
	to, err := p2ppeer.AddrInfoFromString(address)
	if err != nil {
		return nil, err
	}
	if err := h.Connect(ctx, *to); err != nil {
		return nil, err
	}
	s, err := h.NewStream(network.WithAllowLimitedConn(ctx, "bench"), to.ID, protocolID)
	if err != nil {
		return nil, err
	}
	_, err = s.Write([]byte{0})
	return &stream{s, h}, err
}

func addressOf(h host.Host) string {
	return ma.Join(h.Addrs()[0], ma.StringCast(fmt.Sprint("/p2p/", h.ID()))).String()
}

// A stream closes its host when it is closed.
type stream struct {
	network.Stream
	host host.Host
}

func (s *stream) Close() error {
	s.Stream.Close()
	return s.host.Close()
}
