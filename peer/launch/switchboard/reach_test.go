package switchboard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
)

// TestErrorsDoNotDiscloseDialResults dials a peer at an address without a listener.
func TestErrorsDoNotDiscloseDialResults(t *testing.T) {
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Transport(tcp.NewTCPTransport))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	other, err := p2ppeer.Decode("12D3KooWGRUaNZFQNTiMXxRQSCFS1fCkyjYVeQ5fQrJwGvCbhAnx")
	if err != nil {
		t.Fatal(err)
	}
	h.Peerstore().AddAddr(other, ma.StringCast("/ip4/127.0.0.1/tcp/1"), time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 2*dialPause)
	defer cancel()
	b := (&Service{Host: h}).NewBoard(ctx, Config{Log: zerolog.Nop()})
	if _, _, err := b.dial(ctx, other, &pb.Open{}); !errors.Is(err, errNotReached) {
		t.Errorf("dial of a channel: %q", err)
	}
}
