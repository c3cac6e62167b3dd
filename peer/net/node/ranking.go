package node

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// tcpHeadStart is the time by which QUIC is dialled after TCP, and circuits after both: enough for one round
// trip and the handshakes. So QUIC is rarely used where TCP works.
const tcpHeadStart = 300 * time.Millisecond

// circuitHeadStart is the time between dials to two addresses of one relay: enough for several round trips,
// also on a busy machine.
const circuitHeadStart = time.Second

// ownHeadStart is the time by which a peer that listens on only one transport, TCP or QUIC, dials the other
// transport later. Other peers learn a peer's address from connections that start at its listening port.
// Connections over the other transport would not show that address, so hole punching would fail.
const ownHeadStart = 5 * time.Second

// A ranking determines the order in which the addresses of a peer are dialled.
type ranking struct {
	isFirst   func(ma.Multiaddr) bool
	headStart time.Duration // time by which other direct addresses are dialled later than the first ones
}

// rankingFor returns the ranking for a peer that listens on the given addresses. Unlike libp2p's ranking, it
// puts TCP before QUIC. The kernel closes the TCP connections of a killed process within milliseconds, so all
// peers of a job notice its end at once; with QUIC they notice after 43 s. TCP also has the higher throughput.
// If the peer listens only on QUIC, the ranking puts QUIC first.
func rankingFor(listen []ma.Multiaddr) ranking {
	tcp, quic := slices.ContainsFunc(listen, isDirectTCP), slices.ContainsFunc(listen, isDirectQUIC)
	switch {
	case tcp && !quic:
		return ranking{isDirectTCP, ownHeadStart}
	case quic && !tcp:
		return ranking{isDirectQUIC, ownHeadStart}
	}
	return ranking{isDirectTCP, tcpHeadStart}
}

// rank implements network.DialRanker. The addresses of one relay are dialled one after the other, since all of
// them lead to the same circuit.
func (r ranking) rank(addrs []ma.Multiaddr) []network.AddrDelay {
	var first, rest []ma.Multiaddr
	for _, a := range addrs {
		if r.isFirst(a) {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	ranked := swarm.DefaultDialRanker(first)
	through := make(map[p2ppeer.ID]time.Duration) // delay of the next address of each relay
	for _, a := range swarm.DefaultDialRanker(rest) {
		relay := connected.RelayOf(a.Addr)
		switch {
		case relay != "":
			a.Delay += through[relay]
			through[relay] += circuitHeadStart
			if len(first) > 0 {
				a.Delay += tcpHeadStart
			}
		case len(first) > 0:
			a.Delay += r.headStart
		}
		ranked = append(ranked, a)
	}
	return ranked
}

func isDirectTCP(a ma.Multiaddr) bool { return isDirect(a, ma.P_TCP) }

func isDirectQUIC(a ma.Multiaddr) bool { return isDirect(a, ma.P_QUIC_V1) }

func isDirect(a ma.Multiaddr, transport int) bool {
	_, err := a.ValueForProtocol(transport)
	return err == nil && !connection.IsCircuit(a)
}
