package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/time/rate"
)

// grain is the number of bytes that a limited stream moves at once.
const grain = 16 << 10

// A limited host bounds the total rate of its streams in each direction.
type limited struct {
	host.Host
	out, in *rate.Limiter
	sent    atomic.Int64 // in bytes
}

// newLimited starts a host on loopback. Rates are in Mbit/s.
func newLimited(mbit float64) (*limited, error) {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(),
		libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	limiter := func() *rate.Limiter { return rate.NewLimiter(rate.Limit(mbit*1e6/8), 2*grain) }
	return &limited{Host: h, out: limiter(), in: limiter()}, nil
}

func (h *limited) NewStream(ctx context.Context, to p2ppeer.ID, ids ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, to, ids...)
	if err != nil {
		return nil, err
	}
	return stream{s, h}, nil
}

func (h *limited) SetStreamHandler(id protocol.ID, handle network.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s network.Stream) { handle(stream{s, h}) })
}

type stream struct {
	network.Stream
	host *limited
}

func (s stream) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), grain)]
		if err := s.host.out.WaitN(context.Background(), len(part)); err != nil {
			return n, err
		}
		var m int
		m, err = s.Stream.Write(part)
		s.host.sent.Add(int64(m))
		n += m
		b = b[m:]
	}
	return n, err
}

func (s stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b[:min(len(b), grain)])
	if n > 0 {
		if wait := s.host.in.WaitN(context.Background(), n); wait != nil {
			return n, wait
		}
	}
	return n, err
}
