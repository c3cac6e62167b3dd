package node

import "github.com/libp2p/go-libp2p/core/network"

// A Reachability describes whether other peers can connect to a peer directly.
type Reachability string

// The values of a Reachability.
const (
	Auto    Reachability = "auto" // not known, or to be determined
	Public  Reachability = "public"
	Private Reachability = "private"
)

// ReachabilityOf converts a reachability that libp2p has determined.
func ReachabilityOf(r network.Reachability) Reachability {
	switch r {
	case network.ReachabilityPublic:
		return Public
	case network.ReachabilityPrivate:
		return Private
	}
	return Auto
}
