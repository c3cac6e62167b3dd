package peer

import (
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// circuitsApart is a resource manager that does not count circuits as connections of their
// relay's address, where libp2p counts them: all the peers behind one relay would be one address.
// They are bounded by peer, and by the streams that a relay may open (see relayLimits).
type circuitsApart struct{ network.ResourceManager }

// throughRelay stands for the address of any circuit. Addresses of loopback are not counted, and
// circuits without any address would be rationed as if all had the same.
var throughRelay = ma.StringCast("/ip4/127.0.0.1/p2p-circuit")

// isRelayed reports whether an address leads through a relay.
func isRelayed(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// OpenConnection implements network.ResourceManager.
func (m circuitsApart) OpenConnection(dir network.Direction, usefd bool, endpoint ma.Multiaddr) (network.ConnManagementScope, error) {
	if isRelayed(endpoint) {
		endpoint = throughRelay
	}
	return m.ResourceManager.OpenConnection(dir, usefd, endpoint)
}
