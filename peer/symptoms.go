package peer

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/peer/internal/portmap"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// Symptoms are what Diagnose goes by.
type Symptoms struct {
	Standing *Standing `json:"standing,omitempty"` // of the peer that runs on the home; nil: none does
	Home     string    `json:"home,omitempty"`     // why a peer cannot use its home, if none runs
	Ports    string    `json:"ports,omitempty"`    // why it cannot listen, if none runs
	Machine  Machine   `json:"machine"`
	Granted  *Granted  `json:"granted,omitempty"` // to jobs, if a peer runs
	Unread   []Unread  `json:"unread,omitempty"`  // rules by which it is to pause and cannot tell, if one runs
}

// A Machine is what a peer, or its doctor, may use of one.
type Machine struct {
	PortMapping string     `json:"portMapping,omitempty"` // by which a router maps ports: NAT-PMP or UPnP; empty: none does
	Outside     netip.Addr `json:"outside"`               // address of that router, for others
	DiskFree    int64      `json:"diskFree"`              // bytes, where the home is; -1: not known
	CacheUsed   int64      `json:"cacheUsed"`             // bytes
	CacheLimit  int64      `json:"cacheLimit"`            // bytes
	OpenFiles   uint64     `json:"openFiles,omitempty"`   // of the process; 0: not known
	Processes   uint64     `json:"processes,omitempty"`   // of the user or the control group; 0: not known
	Memory      uint64     `json:"memory"`                // bytes, of the machine or the control group; 0: not known
	Unshared    string     `json:"unshared,omitempty"`    // why processes cannot share memory, or empty

	Walls launch.Walls `json:"walls"` // around native programs
}

// Examine returns the symptoms of this machine, as the peer that runs on the home of cfg sees
// it, else as one would. It takes some seconds.
func Examine(ctx context.Context, cfg Config) (Symptoms, error) {
	client, err := Dial(ctx, cfg.Home)
	if errors.Is(err, ErrNoPeer) {
		return examineWithout(ctx, cfg), nil
	}
	if err != nil {
		return Symptoms{}, err
	}
	defer client.Close()
	return client.symptoms(ctx)
}

func (c *Client) symptoms(ctx context.Context) (s Symptoms, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/symptoms", &s)
}

func (c *control) symptoms(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, c.peer.symptoms(r.Context()))
}

func (p *Peer) symptoms(ctx context.Context) Symptoms {
	standing, store := p.standing(ctx), p.files.Store()
	router := p.ports.Router()
	if router.How == "" {
		router = findRouter(ctx)
	}
	m := examineMachine(string(p.home), router)
	if m.Walls = p.walls; p.role != Volunteer {
		m.Walls = launch.ExamineWalls(string(p.home))
	}
	m.CacheUsed, m.CacheLimit = store.Bytes(), store.Limit()
	return Symptoms{Standing: &standing, Machine: m, Granted: p.granted(), Unread: p.unread()}
}

// examineWithout is for a home on which no peer runs.
func examineWithout(ctx context.Context, cfg Config) Symptoms {
	s := Symptoms{Machine: examineMachine(cfg.Home, findRouter(ctx))}
	var cache Cache
	_, err := openHome(cfg.Home)
	if err == nil {
		s.Machine.Walls = launch.ExamineWalls(cfg.Home)
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
		DiskFree: diskFree(dir), OpenFiles: openFiles(), Processes: processes(), Memory: memoryLimit(),
	}
	board, err := channel.NewBoard(1)
	if err != nil {
		m.Unshared = err.Error()
		return m
	}
	board.Close()
	return m
}

// canListen reports why a peer cannot listen. One of several addresses is enough, such as on a
// machine without IPv6, if nobody else has the others.
func canListen(cfg Config) error {
	listen, err := listenAddrs(cfg)
	if err == nil {
		err = portsFree(listen)
	}
	if err != nil {
		return err
	}
	for _, a := range listen {
		network, address, dialErr := manet.DialArgs(a)
		if err = dialErr; err == nil {
			err = probePort(network, address)
		}
		if err == nil {
			break
		}
	}
	if data := cfg.dataListen(); err == nil && data != "" {
		err = probePort("tcp", data)
	}
	return err
}

// routerTimeout bounds how long it is looked for a router that maps ports.
const routerTimeout = 3 * time.Second

// findRouter looks for a router that maps ports.
func findRouter(ctx context.Context) portmap.Router {
	ctx, cancel := context.WithTimeout(ctx, routerTimeout)
	defer cancel()
	return portmap.Find(ctx)
}
