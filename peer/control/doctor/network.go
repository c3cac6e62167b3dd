package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/p2pmpi/p2pmpi/peer/net/node"
)

// maxSkew is the largest difference between clocks for the level Well. It covers the delay of an answer.
const maxSkew = 30 * time.Second

func checkSupernodes(p Network) Finding {
	const (
		about = "supernodes"
		do    = "check the addresses in --supernode, and that the firewall permits outgoing connections to them"
	)
	switch {
	case p.Supernodes == 0 && p.Connected == 0:
		return Finding{about, Warning, "none is configured, and no peer is connected",
			"set --supernode, unless all peers are on this local network"}
	case p.Supernodes == 0:
		return well(about, "none is configured, and none is needed: other peers are connected")
	case p.Met == 0:
		return Finding{about, Failing, fmt.Sprintf("none of %d is connected", p.Supernodes), do}
	case p.Met < p.Supernodes:
		return Finding{about, Warning, fmt.Sprintf("%d of %d are connected", p.Met, p.Supernodes), do}
	}
	return well(about, "%d of %d are connected", p.Met, p.Supernodes)
}

func checkReachability(p Network, m Machine) Finding {
	const about = "reachability"
	forward := "forward the port of --listen on the router"
	if m.PortMapping == "" {
		forward += ", or enable UPnP or NAT-PMP on it"
	}
	direct := "for direct connections, which are faster: " + forward
	switch {
	case p.Reachability == node.Public:
		return well(about, "other peers can connect to this machine directly")
	case p.Reachability == node.Private && p.Relayed:
		return Finding{about, Warning, "other peers reach this machine only through a relay or by hole punching; " + p.paths(), direct}
	case p.Reachability == node.Private:
		return Finding{about, Failing, "no other peer can reach this machine; " + p.paths(),
			forward + ", or set --supernode to a reachable peer, which relays connections"}
	case p.Indirect > 0:
		return Finding{about, Warning, "unknown, and some peers are reached only through a relay; " + p.paths(), direct}
	}
	return Finding{about, Unknown, "unknown: no peer outside this network has tested it yet; " + p.paths(),
		"set --supernode to a peer outside this network, and run p2pboot doctor again after a minute"}
}

// paths describes how the connected peers are reached.
func (p Network) paths() string {
	return fmt.Sprintf("connected directly to %s, only through a relay to %d", english.Plural(p.Connected-p.Indirect, "peer", ""), p.Indirect)
}

func checkNAT(p Network) Finding {
	const about = "NAT"
	symmetric, independent := p.transports(node.SymmetricNAT), p.transports(node.IndependentNAT)
	switch {
	case len(independent) > 0:
		return well(about, "the router keeps the port of %s for all destinations (endpoint-independent): hole punching works",
			strings.Join(independent, " and "))
	case len(symmetric) > 0 && p.Reachability == node.Public:
		return well(about, "symmetric, but other peers can connect to this machine directly")
	case len(symmetric) > 0:
		return Finding{about, Warning,
			"the router uses a different port for each destination (symmetric): hole punching fails between two such routers, and a relay is used",
			"forward the port of --listen on the router, or enable full-cone (endpoint-independent) NAT on it"}
	case slices.Contains(slices.Collect(maps.Values(p.NAT)), node.NoNAT):
		return well(about, "none: other peers see this machine's own public address")
	case p.Reachability == node.Public:
		return well(about, "unknown, but other peers can connect to this machine directly")
	}
	return Finding{about, Unknown,
		"the kind of router is unknown: to determine it, this peer needs outgoing connections to two peers outside this network, at different addresses",
		"set --supernode to two supernodes outside this network, and run p2pboot doctor again"}
}

// transports returns the transports whose address translation is of the given kind.
func (p Network) transports(kind string) (names []string) {
	for _, transport := range []string{"tcp", "udp"} {
		if p.NAT[transport] == kind {
			names = append(names, transport)
		}
	}
	return names
}

// checkClock compares the clock with those of other peers.
func checkClock(p Network) Finding {
	const (
		about = "clock"
		do    = "set this machine's clock, preferably by NTP: peers whose clocks differ by more than five minutes reject each other's offers"
	)
	n := len(p.Ahead)
	if p.Doubted > n {
		all := english.Plural(p.Doubted+n, "peer", "")
		return Finding{about, Failing, fmt.Sprintf("differs by minutes from the clocks of %d of %s", p.Doubted, all), do}
	}
	if n == 0 {
		return Finding{about, Unknown, "cannot be compared: no peer has answered", "run p2pboot doctor again when peers are connected"}
	}
	ahead := slices.Sorted(slices.Values(p.Ahead))
	skew, direction := ahead[n/2], "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	all := english.Plural(n, "peer", "")
	if skew.Abs() > maxSkew {
		return Finding{about, Warning, fmt.Sprintf("%v %s the median of %s", skew.Abs().Round(time.Second), direction, all), do}
	}
	return well(about, "within %v of the median of %s", maxSkew, all)
}

// checkPortMapping reports whether the router maps ports; p is nil if no peer runs.
func checkPortMapping(m Machine, p *Network) Finding {
	const (
		about = "port mapping"
		none  = "no router offers port mapping"
	)
	direct := p == nil || p.Reachability != node.Private // or not known
	switch {
	case m.PortMapping == "" && direct:
		return well(about, none)
	case m.PortMapping == "":
		return Finding{about, Warning, none, "enable UPnP or NAT-PMP on the router, so that other peers can connect to this machine directly"}
	case !node.IsPublic(m.Outside) && !direct:
		return Finding{about, Warning,
			fmt.Sprintf("the router maps ports (%s), but it is behind another router: its own address is %s", m.PortMapping, m.Outside),
			"forward the ports on the other router too, or ask the provider for a public address"}
	}
	return well(about, "the router maps ports (%s) at %s", m.PortMapping, m.Outside)
}
