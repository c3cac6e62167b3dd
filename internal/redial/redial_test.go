package redial

import (
	"context"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

func newHost(t *testing.T) host.Host {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestAllow(t *testing.T) {
	from, to := newHost(t), newHost(t)
	info := p2ppeer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}
	from.Network().(*swarm.Swarm).Backoff().AddBackoff(info.ID, info.Addrs[0])
	if err := from.Connect(context.Background(), info); !errors.Is(err, swarm.ErrDialBackoff) {
		t.Fatalf("during the backoff: got %v, want %v", err, swarm.ErrDialBackoff)
	}
	Allow(from, info.ID)
	if err := from.Connect(context.Background(), info); err != nil {
		t.Error(err)
	}
}
