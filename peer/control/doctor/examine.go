package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
)

// Sources are the services of a running peer that know its network.
type Sources struct {
	Host       host.Host
	Watcher    *node.Watcher
	Discovery  *discovery.Service
	Addresses  int                // number of announced addresses
	Supernodes []p2ppeer.AddrInfo // as configured
}

// askTimeout bounds the time to ask other peers for their clocks.
const askTimeout = 5 * time.Second

// ExamineNetwork returns the facts about a peer's network. It queries other peers to compare clocks.
func ExamineNetwork(ctx context.Context, from Sources) *Network {
	_, own, _ := connected.Interfaces() // none on an error
	links := from.Host.Network()
	n := &Network{
		Addresses:    from.Addresses,
		Connected:    len(links.Peers()),
		Reachability: node.ReachabilityOf(from.Discovery.Reachability()),
		NAT:          from.Watcher.NATKinds(own),
	}
	for _, other := range links.Peers() {
		if c, ok := connection.Best(from.Host, other, nil); ok && c.Way == connection.Relayed {
			n.Indirect++
		}
	}
	n.Relayed = slices.ContainsFunc(from.Host.Addrs(), connection.IsCircuit)
	for _, info := range from.Supernodes {
		if info.ID == from.Host.ID() {
			continue
		}
		n.Supernodes++
		if links.Connectedness(info.ID) != network.NotConnected {
			n.Met++
		}
	}
	n.Ahead, n.Doubted = clocks(ctx, from.Discovery)
	return n
}

// clocks returns the lead of this clock over those of other peers, and the number of peers whose clocks
// differ too much to accept their offers.
func clocks(ctx context.Context, d *discovery.Service) (ahead []time.Duration, doubted int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, passed, _ := d.Candidates(ctx, discovery.Need{All: true, Busy: true}) // late answers do not count
	for _, c := range passed {
		if c.Reason == discovery.Expired {
			doubted++
		}
	}
	ahead = []time.Duration{}
	for _, k := range d.Peers() {
		ahead = append(ahead, k.Answered.Sub(k.Offer.Issued))
	}
	return ahead, doubted
}

// ExamineMachine returns the facts about the machine of a home, except its cache and its sandbox. Without a
// known router, it searches for one that maps ports.
func ExamineMachine(ctx context.Context, home string, router portmap.Router) Machine {
	if router.How == "" {
		router = findRouter(ctx)
	}
	m := Machine{
		PortMapping: router.How, Outside: router.Address,
		DiskFree: machine.DiskFree(home), OpenFiles: machine.OpenFiles(), Processes: machine.Processes(), Memory: machine.Memory(),
	}
	board, err := channel.NewBoard(1)
	if err != nil {
		m.Unshared = err.Error()
		return m
	}
	board.Close()
	return m
}

// routerTimeout bounds the search for a router that maps ports.
const routerTimeout = 3 * time.Second

func findRouter(ctx context.Context) portmap.Router {
	ctx, cancel := context.WithTimeout(ctx, routerTimeout)
	defer cancel()
	return portmap.Find(ctx)
}

// CanListen returns the reason why a peer could not listen on the given addresses, or nil. One usable
// address is enough, such as on a machine without IPv6, but no address may be in use by another process.
// data is the host:port for messages between processes, or empty if there is none.
func CanListen(listen []ma.Multiaddr, data string) error {
	err := node.PortsFree(listen)
	if err != nil {
		return err
	}
	for _, a := range listen {
		network, address, dialErr := manet.DialArgs(a)
		if err = dialErr; err == nil {
			err = node.ProbePort(network, address)
		}
		if err == nil {
			break
		}
	}
	if err == nil && data != "" {
		err = node.ProbePort("tcp", data)
	}
	return err
}
