package peer

import (
	"context"
	"errors"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// Examine returns the facts about this machine that doctor.Diagnose judges. If a peer runs on the home of
// cfg, that peer examines the machine; otherwise Examine does so itself. Examine takes some seconds.
func Examine(ctx context.Context, cfg Config) (doctor.Facts, error) {
	client, err := control.Dial(ctx, cfg.Home)
	if errors.Is(err, control.ErrNoPeer) {
		return examineWithout(ctx, cfg), nil
	}
	if err != nil {
		return doctor.Facts{}, err
	}
	defer client.Close()
	return client.Examine(ctx)
}

// examineWithout examines the machine when no peer runs on the home.
func examineWithout(ctx context.Context, cfg Config) doctor.Facts {
	f := doctor.Facts{Machine: doctor.ExamineMachine(ctx, cfg.Home, portmap.Router{})}
	var cache status.Cache
	_, err := homedir.Open(cfg.Home)
	if err == nil {
		f.Machine.Sandbox = launch.ExamineSandbox(cfg.Home)
		cache, err = control.CacheOf(cfg.Home)
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
