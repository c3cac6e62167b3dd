package node

import (
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// circuitsApart is a resource manager that does not count circuits as connections from the relay's address.
// libp2p counts them, so all peers behind one relay would share the limit of one address. Limits per peer and
// on the streams of a relay (relayLimits) bound circuits instead.
type circuitsApart struct{ network.ResourceManager }

// throughRelay replaces the address of every circuit. It has a loopback address, because libp2p does not limit
// connections from those. Circuits without an IP address would all share one limit.
var throughRelay = ma.StringCast("/ip4/127.0.0.1/p2p-circuit")

func (m circuitsApart) OpenConnection(dir network.Direction, usefd bool, endpoint ma.Multiaddr) (network.ConnManagementScope, error) {
	if connection.IsCircuit(endpoint) {
		endpoint = throughRelay
	}
	return m.ResourceManager.OpenConnection(dir, usefd, endpoint)
}
