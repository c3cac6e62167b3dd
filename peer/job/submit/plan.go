package submit

import (
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Planned is a peer that a job would run on now.
type Planned struct {
	Peer      string             `json:"peer"` // peer ID
	Processes []view.Process     `json:"processes"`
	RTT       time.Duration      `json:"rtt"`   // round-trip time to it, in nanoseconds
	Speed     int                `json:"speed"` // speed of one processor, in Mflop/s, reduced by its load; 0: unknown
	Domain    reservation.Domain `json:"domain"`
	Machine   string             `json:"machine,omitempty"` // equal for peers on one machine, different for each job; empty: unknown
	Relay     string             `json:"relay,omitempty"`   // ID of the relay, if all connections to the peer go through one
}

// runs reports whether the peer runs a replica of a rank.
func (p Planned) runs(rank int) bool {
	return slices.ContainsFunc(p.Processes, func(q view.Process) bool { return q.Rank == rank })
}

// planned returns the peers on which the job runs.
func (k *knownPeers) planned(reserved *reservation.Reservation) (out []Planned) {
	for _, p := range reserved.Placements {
		c := k.met[p.Peer]
		out = append(out, Planned{
			Peer: p.Peer.String(), Processes: slices.Clone(p.Processes), RTT: c.RTT, Speed: c.Speed, Domain: c.Domain,
			Machine: p.Machine, Relay: k.relayOf(p.Peer),
		})
	}
	return out
}

// relayOf returns the ID of the relay through which all connections to a peer go, or "".
func (k *knownPeers) relayOf(id p2ppeer.ID) string {
	var through []ma.Multiaddr
	for _, c := range k.s.cfg.Host.Network().ConnsToPeer(id) {
		through = append(through, c.RemoteMultiaddr())
	}
	return onlyRelay(through)
}

// onlyRelay returns the ID of the relay through which all connections from these addresses go, or "".
func onlyRelay(from []ma.Multiaddr) (only string) {
	for _, a := range from {
		relay := connected.RelayOf(a).String()
		if relay == "" || only != "" && only != relay {
			return ""
		}
		only = relay
	}
	return only
}
