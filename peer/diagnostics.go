package peer

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
)

// Diagnostics are the measurements that Diagnose judges.
type Diagnostics struct {
	Network *NetworkState `json:"standing,omitempty"` // of the running peer; nil if none runs
	Home    string        `json:"home,omitempty"`     // why a peer cannot use its home, if none runs
	Ports   string        `json:"ports,omitempty"`    // why a peer cannot listen, if none runs
	Machine Machine       `json:"machine"`
	Granted *Granted      `json:"granted,omitempty"` // limits of jobs, if a peer runs
	Unread  []Unread      `json:"unread,omitempty"`  // suspend rules that cannot be evaluated, if a peer runs
}

// A Machine describes the resources of a machine that are available to the peer or to p2pboot doctor.
type Machine struct {
	PortMapping string     `json:"portMapping,omitempty"` // protocol of the router: NAT-PMP or UPnP; empty if none maps ports
	Outside     netip.Addr `json:"outside"`               // that router's external address
	DiskFree    int64      `json:"diskFree"`              // bytes free in the home's file system; -1 if not known
	CacheUsed   int64      `json:"cacheUsed"`             // bytes
	CacheLimit  int64      `json:"cacheLimit"`            // bytes
	OpenFiles   uint64     `json:"openFiles,omitempty"`   // limit of the process; 0 if not known
	Processes   uint64     `json:"processes,omitempty"`   // limit of the user or the control group; 0 if not known
	Memory      uint64     `json:"memory"`                // bytes, of the machine or control group; 0 if not known
	Unshared    string     `json:"unshared,omitempty"`    // why processes cannot share memory; empty if they can

	Walls launch.Sandbox `json:"walls"` // sandbox layers for native programs
}

// Examine returns the diagnostics of this machine. If a peer runs on the home of cfg, that peer examines the
// machine; otherwise Examine does so itself. It takes some seconds.
func Examine(ctx context.Context, cfg Config) (Diagnostics, error) {
	client, err := Dial(ctx, cfg.Home)
	if errors.Is(err, ErrNoPeer) {
		return examineWithout(ctx, cfg), nil
	}
	if err != nil {
		return Diagnostics{}, err
	}
	defer client.Close()
	return client.diagnostics(ctx)
}

func (c *Client) diagnostics(ctx context.Context) (s Diagnostics, err error) {
	return s, c.Call(ctx, http.MethodGet, "/v1/symptoms", &s)
}

func (q requests) diagnostics(w http.ResponseWriter, r *http.Request) {
	control.Reply(w, http.StatusOK, q.peer.diagnostics(r.Context()))
}

func (p *Peer) diagnostics(ctx context.Context) Diagnostics {
	network, store := p.networkState(ctx), p.files.Store()
	router := p.ports.Router()
	if router.How == "" {
		router = findRouter(ctx)
	}
	m := examineMachine(string(p.home), router)
	if m.Walls = p.walls; p.role != Volunteer {
		m.Walls = launch.ExamineSandbox(string(p.home))
	}
	m.CacheUsed, m.CacheLimit = store.Bytes(), store.Limit()
	return Diagnostics{Network: &network, Machine: m, Granted: p.granted(), Unread: p.unread()}
}

// examineWithout examines the machine when no peer runs on the home.
func examineWithout(ctx context.Context, cfg Config) Diagnostics {
	s := Diagnostics{Machine: examineMachine(cfg.Home, findRouter(ctx))}
	var cache Cache
	_, err := openHome(cfg.Home)
	if err == nil {
		s.Machine.Walls = launch.ExamineSandbox(cfg.Home)
		cache, err = CacheOf(cfg.Home)
	}
	if err != nil {
		s.Home = err.Error()
	}
	s.Machine.CacheUsed, s.Machine.CacheLimit = cache.Bytes, cfg.CacheLimit<<20
	if err := canListen(cfg); err != nil {
		s.Ports = err.Error()
	}
	return s
}

func examineMachine(dir string, router portmap.Router) Machine {
	m := Machine{
		PortMapping: router.How, Outside: router.Address,
		DiskFree: machine.DiskFree(dir), OpenFiles: machine.OpenFiles(), Processes: machine.Processes(), Memory: machine.Memory(),
	}
	board, err := channel.NewBoard(1)
	if err != nil {
		m.Unshared = err.Error()
		return m
	}
	board.Close()
	return m
}

// canListen returns the reason why a peer could not listen. One usable address is enough, such as on a
// machine without IPv6, but no address may be in use by another process.
func canListen(cfg Config) error {
	err := node.PortsFree(cfg.Listen)
	if err != nil {
		return err
	}
	for _, a := range cfg.Listen {
		network, address, dialErr := manet.DialArgs(a)
		if err = dialErr; err == nil {
			err = node.ProbePort(network, address)
		}
		if err == nil {
			break
		}
	}
	if data := cfg.dataListen(); err == nil && data != "" {
		err = node.ProbePort("tcp", data)
	}
	return err
}

// routerTimeout bounds the search for a router that maps ports.
const routerTimeout = 3 * time.Second

// findRouter searches for a router that maps ports.
func findRouter(ctx context.Context) portmap.Router {
	ctx, cancel := context.WithTimeout(ctx, routerTimeout)
	defer cancel()
	return portmap.Find(ctx)
}
