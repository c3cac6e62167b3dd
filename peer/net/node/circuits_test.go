package node

import (
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"
)

// TestCircuitsDoNotCountAgainstTheRelaysAddress opens more circuits through one relay than the number of
// connections that one address may have. It checks that the relay's address may still open that number.
func TestCircuitsDoNotCountAgainstTheRelaysAddress(t *testing.T) {
	manager, err := newResourceManager(channels, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	const relay = "/ip4/11.0.0.1/tcp/4001"
	circuit := ma.StringCast(relay + "/p2p/QmcEPrat8ShnCph8WjkREzt5CPXF2RwhYxYBALDcLC1iV6/p2p-circuit")
	peers := 0
	connect := func(dir network.Direction, at ma.Multiaddr) error {
		scope, err := manager.OpenConnection(dir, true, at)
		if err != nil {
			return err
		}
		peers++
		return scope.SetPeer(p2ppeer.ID(fmt.Sprint("peer ", peers)))
	}
	for n := range 3 * connsPerAddress { // also more than a burst
		for _, dir := range []network.Direction{network.DirInbound, network.DirOutbound} {
			if err := connect(dir, circuit); err != nil {
				t.Fatalf("circuit %d: %v", n+1, err)
			}
		}
	}
	for n := range connsPerAddress {
		if err := connect(network.DirInbound, ma.StringCast(relay)); err != nil {
			t.Fatalf("connection %d from the relay's address: %v", n+1, err)
		}
	}
	if connect(network.DirInbound, ma.StringCast(relay)) == nil {
		t.Errorf("more than %d connections from the relay's address were accepted", connsPerAddress)
	}
}
