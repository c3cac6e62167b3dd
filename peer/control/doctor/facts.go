package doctor

import (
	"net/netip"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
)

// Facts are the measurements that Diagnose judges.
type Facts struct {
	Network *Network        `json:"standing,omitempty"` // network of the running peer, or nil if none runs
	Home    string          `json:"home,omitempty"`     // why a peer cannot use its home, if none runs
	Ports   string          `json:"ports,omitempty"`    // why a peer cannot listen, if none runs
	Machine Machine         `json:"machine"`
	Granted *status.Granted `json:"granted,omitempty"` // limits of jobs, if a peer runs
	Unread  []status.Unread `json:"unread,omitempty"`  // suspend rules that cannot be evaluated, if a peer runs
}

// A Network describes a peer's connections and reachability.
type Network struct {
	Addresses    int               `json:"addresses"`     // announced by the peer
	Connected    int               `json:"connected"`     // number of connected peers
	Indirect     int               `json:"indirect"`      // number of these peers that are reached only through a relay
	Supernodes   int               `json:"supernodes"`    // configured supernodes other than this peer
	Met          int               `json:"met"`           // number of these supernodes that are connected
	Reachability node.Reachability `json:"reachability"`  // public or private; auto if not known
	Relayed      bool              `json:"relayed"`       // true if other peers can reach the peer through a relay
	NAT          map[string]string `json:"nat,omitempty"` // by transport (tcp, udp): endpoint-independent, symmetric or none
	Ahead        []time.Duration   `json:"ahead"`         // lead over the clock of each peer that answered, nanoseconds
	Doubted      int               `json:"doubted"`       // number of peers whose offers are expired or in the future by this machine's clock
}

// A Machine describes the resources of a machine that are available to the peer or to p2pboot doctor.
type Machine struct {
	PortMapping string     `json:"portMapping,omitempty"` // protocol of the router: NAT-PMP or UPnP, or empty if none maps ports
	Outside     netip.Addr `json:"outside"`               // that router's external address
	DiskFree    int64      `json:"diskFree"`              // bytes free in the home's file system, or -1 if not known
	CacheUsed   int64      `json:"cacheUsed"`             // bytes
	CacheLimit  int64      `json:"cacheLimit"`            // bytes
	OpenFiles   uint64     `json:"openFiles,omitempty"`   // limit of the process, or 0 if not known
	Processes   uint64     `json:"processes,omitempty"`   // limit of the user or the control group, or 0 if not known
	Memory      uint64     `json:"memory"`                // bytes, of the machine or control group, or 0 if not known
	Unshared    string     `json:"unshared,omitempty"`    // why processes cannot share memory, or empty if they can

	Sandbox launch.Sandbox `json:"walls"` // sandbox layers for native programs
}
