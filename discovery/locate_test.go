package discovery

import (
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// TestLocate finds a peer whose only known address is outdated.
func TestLocate(t *testing.T) {
	super := newHost(t)
	newService(t, super, testConfig())
	moved := boot(t, testConfig(super))
	s := boot(t, testConfig(super))
	id := moved.host.ID()
	if err := s.host.Network().ClosePeer(id); err != nil {
		t.Fatal(err)
	}
	s.host.Peerstore().ClearAddrs(id)
	nowhere := newHost(t)
	s.host.Peerstore().AddAddrs(id, nowhere.Addrs(), deadline)
	nowhere.Close()
	ctx := testContext(t)
	for s.Locate(ctx, id) != nil { // the other peers do not know of it yet
		if ctx.Err() != nil {
			t.Fatal("the peer was not found")
		}
	}
	if err := s.host.Connect(ctx, p2ppeer.AddrInfo{ID: id}); err != nil {
		t.Error(err)
	}
	gone := newHost(t)
	gone.Close()
	if s.Locate(ctx, gone.ID()) == nil {
		t.Error("a peer that no other peer knows was found")
	}
}
