package peer

import (
	"context"
	"errors"
	"net/http"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// Examine returns the facts about this machine that doctor.Diagnose judges. If a peer runs on the home of
// cfg, that peer examines the machine; otherwise Examine does so itself. It takes some seconds.
func Examine(ctx context.Context, cfg Config) (doctor.Facts, error) {
	client, err := Dial(ctx, cfg.Home)
	if errors.Is(err, ErrNoPeer) {
		return examineWithout(ctx, cfg), nil
	}
	if err != nil {
		return doctor.Facts{}, err
	}
	defer client.Close()
	return client.diagnostics(ctx)
}

func (c *Client) diagnostics(ctx context.Context) (f doctor.Facts, err error) {
	return f, c.Call(ctx, http.MethodGet, "/v1/symptoms", &f)
}

func (q requests) diagnostics(w http.ResponseWriter, r *http.Request) {
	control.Reply(w, http.StatusOK, q.peer.diagnostics(r.Context()))
}

func (p *Peer) diagnostics(ctx context.Context) doctor.Facts {
	network := doctor.ExamineNetwork(ctx, doctor.Sources{
		Host: p.net.Host, Watcher: p.net.Watcher, Discovery: p.discovery,
		Addresses: len(p.Addresses()), Supernodes: p.cfg.Supernodes,
	})
	m := doctor.ExamineMachine(ctx, string(p.home), p.net.Ports.Router())
	if m.Walls = p.walls; p.role != Volunteer {
		m.Walls = launch.ExamineWalls(string(p.home))
	}
	store := p.files.Store()
	m.CacheUsed, m.CacheLimit = store.Bytes(), store.Limit()
	return doctor.Facts{Network: network, Machine: m, Granted: p.granted(), Unread: p.suspend.Unread()}
}

// examineWithout examines the machine when no peer runs on the home.
func examineWithout(ctx context.Context, cfg Config) doctor.Facts {
	f := doctor.Facts{Machine: doctor.ExamineMachine(ctx, cfg.Home, portmap.Router{})}
	var cache Cache
	_, err := homedir.Open(cfg.Home)
	if err == nil {
		f.Machine.Walls = launch.ExamineWalls(cfg.Home)
		cache, err = CacheOf(cfg.Home)
	}
	if err != nil {
		f.Home = err.Error()
	}
	f.Machine.CacheUsed, f.Machine.CacheLimit = cache.Bytes, cfg.CacheLimit<<20
	if err := doctor.CanListen(cfg.Listen, cfg.dataListen()); err != nil {
		f.Ports = err.Error()
	}
	return f
}
