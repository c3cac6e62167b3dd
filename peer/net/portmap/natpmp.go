package portmap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	natpmp "github.com/jackpal/go-nat-pmp"
	"github.com/libp2p/go-netroute"
)

// pmpTimeout bounds one request. The library repeats the request during that time, and accepts no context.
const pmpTimeout = time.Second

// pmpRouter is a router that supports NAT-PMP.
type pmpRouter struct{ client *natpmp.Client }

// anywhere is an address outside the local network, for a route lookup. Nothing is sent to it.
var anywhere = net.IPv4(1, 1, 1, 1)

// findPMP queries the default gateway.
func findPMP(ctx context.Context) (router, error) {
	routes, err := netroute.New()
	if err != nil {
		return nil, fmt.Errorf("find the default gateway: %w", err)
	}
	_, gateway, _, err := routes.Route(anywhere)
	if err == nil && gateway == nil {
		err = errors.New("the default route leads to the local network")
	}
	if err != nil {
		return nil, fmt.Errorf("find the default gateway: %w", err)
	}
	r := pmpRouter{natpmp.NewClientWithTimeout(gateway, pmpTimeout)}
	if _, err := outsideOf(ctx, r); err != nil {
		return nil, fmt.Errorf("NAT-PMP at %s: %w", gateway, err)
	}
	return r, nil
}

func (pmpRouter) how() string { return "NAT-PMP" }

func (r pmpRouter) address(context.Context) (netip.Addr, error) {
	a, err := r.client.GetExternalAddress()
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom4(a.ExternalIPAddress), nil
}

func (r pmpRouter) addMapping(_ context.Context, p Port, outside uint16, lasts time.Duration) (uint16, error) {
	m, err := r.client.AddPortMapping(p.Protocol, int(p.Number), int(outside), int(lasts.Seconds()))
	if err != nil {
		return 0, err
	}
	return m.MappedExternalPort, nil
}

func (r pmpRouter) removeMapping(_ context.Context, p Port, _ uint16) error {
	_, err := r.client.AddPortMapping(p.Protocol, int(p.Number), 0, 0)
	return err
}
