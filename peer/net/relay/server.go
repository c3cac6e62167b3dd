package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"
)

// memberProtocol is a protocol that carries no data. Each member of a network lists it among its protocols, so
// that relays recognize members. Submit-only peers list it too, although they do not serve the DHT.
func memberProtocol(network string) protocol.ID {
	return protocol.ID("/p2pmpi/" + network + "/member/1.0.0")
}

// openProtocol is a protocol that carries no data. A relay that others can reach lists it among its protocols, to
// announce that it relays for the whole network. Peers whose supernode it is use it without this announcement.
func openProtocol(network string) protocol.ID {
	return protocol.ID("/p2pmpi/" + network + "/relay/1.0.0")
}

// identifyTimeout bounds the wait until a new peer has listed its protocols.
const identifyTimeout = 5 * time.Second

// serve makes h a relay for the members of a network until the relay is closed.
func serve(h host.Host, members membership, limits Limits) (*relay.Relay, error) {
	r, err := relay.New(meteredHost{h, limits},
		relay.WithResources(limits.resources()), relay.WithACL(members),
		relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }))
	if err != nil {
		return nil, fmt.Errorf("serve as a relay: %w", err)
	}
	return r, nil
}

// A membership permits only members of a network to reserve and to connect.
type membership struct {
	host     host.Host
	protocol protocol.ID
}

var _ relay.ACLFilter = membership{}

func (m membership) AllowReserve(p p2ppeer.ID, _ ma.Multiaddr) bool { return m.has(p) }

// AllowConnect implements relay.ACLFilter. The destination has a reservation, so it is a member.
func (m membership) AllowConnect(src p2ppeer.ID, _ ma.Multiaddr, _ p2ppeer.ID) bool {
	return m.has(src)
}

// has reports whether p is in the network. If p has just connected, has waits until p has identified itself.
func (m membership) has(p p2ppeer.ID) bool {
	if ids, ok := m.host.(interface{ IDService() identify.IDService }); ok {
		ctx, cancel := context.WithTimeout(context.Background(), identifyTimeout)
		defer cancel()
		awaitIdentified(ctx, ids.IDService(), m.host.Network().ConnsToPeer(p))
	}
	speaks, err := m.host.Peerstore().SupportsProtocols(p, m.protocol)
	return err == nil && len(speaks) > 0
}

func awaitIdentified(ctx context.Context, ids identify.IDService, conns []network.Conn) {
	for _, c := range conns {
		select {
		case <-ids.IdentifyWait(c):
		case <-ctx.Done():
		}
	}
}
