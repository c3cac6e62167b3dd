package connection

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
)

// A Way is a kind of connection.
type Way string

// The kinds of connections, best first.
const (
	Direct  Way = "direct"
	Punched Way = "punched" // direct after hole punching, in which both peers dial at the same time
	Relayed Way = "relayed"
)

// Ways lists all kinds of connections, best first.
var Ways = []Way{Direct, Punched, Relayed}

// A Connection describes a connection to another peer.
type Connection struct {
	Way       Way
	Relay     p2ppeer.ID // ID of the relay, if any
	Transport string     // tcp or quic; for a circuit, the transport to the relay
	Address   ma.Multiaddr
	Why       string // why the connection is not better; empty if it is direct and uses TCP
}

// Of describes one connection of h.
func Of(h host.Host, c network.Conn, punches *Punches) Connection {
	out := Connection{Relay: connected.RelayOf(c.RemoteMultiaddr()), Address: c.RemoteMultiaddr()}
	out.Transport = transportOf(out.Address)
	tried := punches.of(c.RemotePeer())
	switch {
	case out.Relay != "":
		out.Way = Relayed
	case tried.made(c.Stat().Opened):
		out.Way = Punched
	default:
		out.Way = Direct
	}
	out.Why = why(out, tried, hasDirect(h.Peerstore().Addrs(c.RemotePeer())))
	return out
}

// Outline returns Why without the results for single addresses. It is for other peers, which must not read these
// results: since they may have named the addresses, they would learn what this peer can reach.
func (c Connection) Outline() string {
	if c.Way == Relayed {
		return "no direct connection"
	}
	return c.Why
}

// Best describes the best connection to a peer. It returns false if there is none.
func Best(h host.Host, peer p2ppeer.ID, punches *Punches) (Connection, bool) {
	conns := h.Network().ConnsToPeer(peer)
	if len(conns) == 0 {
		return Connection{}, false
	}
	var all []Connection
	for _, c := range conns {
		all = append(all, Of(h, c, punches))
	}
	return slices.MinFunc(all, func(a, b Connection) int {
		return slices.Index(Ways, a.Way) - slices.Index(Ways, b.Way)
	}), true
}

// why explains why a connection is not better. tried describes the attempts to make a better one. known reports
// whether a direct address of the peer is known.
func why(c Connection, tried attempt, known bool) string {
	switch {
	case c.Way == Punched:
		return "unreachable from outside: hole-punched through a router"
	case c.Way == Direct && c.Transport == "quic":
		return "no TCP connection succeeded first"
	case c.Way == Direct:
		return ""
	}
	var reasons []string
	switch {
	case tried.dialled != "":
		reasons = append(reasons, "no direct connection: "+tried.dialled)
	case !known:
		reasons = append(reasons, "no direct address is known")
	default:
		reasons = append(reasons, "no direct connection")
	}
	switch {
	case tried.punching:
		reasons = append(reasons, "hole punching is in progress")
	case tried.failed != "":
		reasons = append(reasons, fmt.Sprintf("no hole was punched (attempts: %d): %s", tried.times, tried.failed))
	default:
		reasons = append(reasons, "hole punching was not tried")
	}
	return strings.Join(reasons, "; ")
}

// IsCircuit reports whether an address leads through a relay.
func IsCircuit(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// transportOf returns the transport of the first hop of an address.
func transportOf(a ma.Multiaddr) string {
	for _, c := range a {
		switch c.Protocol().Code {
		case ma.P_TCP:
			return "tcp"
		case ma.P_QUIC_V1:
			return "quic"
		}
	}
	return "other"
}

func hasDirect(addrs []ma.Multiaddr) bool {
	return slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return connected.RelayOf(a) == "" })
}

// maxReason bounds a reason, in bytes. Errors of libp2p can be long, since they list the result for each address.
const maxReason = 160

// dialFailure shortens the text of a swarm.DialError, which lists the result for each address, to one line.
// It prefers the result for a public address. A loopback address comes last, since other machines cannot
// reach the peer there.
func dialFailure(text string) string {
	best, rank, count := "", math.MaxInt, 0
	for line := range strings.Lines(text) {
		address, cause, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "* ["), "] ")
		a, err := ma.NewMultiaddr(address)
		if !ok || err != nil {
			continue
		}
		count++
		if r := distance(a); r < rank {
			best, rank = address+": "+cause, r
		}
	}
	switch count {
	case 0:
		return shorten(text)
	case 1:
		return shorten(best)
	}
	return fmt.Sprintf("%s (and %s)", shorten(best), english.Plural(count-1, "other address", "other addresses"))
}

// distance returns 0 for a public address, 2 for a loopback address, and 1 for any other.
func distance(a ma.Multiaddr) int {
	switch {
	case manet.IsPublicAddr(a):
		return 0
	case manet.IsIPLoopback(a):
		return 2
	}
	return 1
}

// shorten shortens a reason to one line of at most maxReason bytes.
func shorten(reason string) string {
	reason = strings.Join(strings.Fields(reason), " ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}

// slack is the tolerated difference between the times of an attempt and of its connection.
const slack = time.Second
