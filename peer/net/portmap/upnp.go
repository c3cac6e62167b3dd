package portmap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/huin/goupnp"
	igd "github.com/huin/goupnp/dcps/internetgateway2"
	"github.com/huin/goupnp/soap"
)

// An upnpRouter is an Internet gateway device.
type upnpRouter struct {
	connection
	self string // address of this machine, as seen by the router
}

// A connection is a device's connection to the Internet.
type connection interface {
	GetExternalIPAddressCtx(ctx context.Context) (string, error)
	AddPortMappingCtx(ctx context.Context, remoteHost string, outside uint16, protocol string, inside uint16, client string, enabled bool, description string, seconds uint32) error
	DeletePortMappingCtx(ctx context.Context, remoteHost string, outside uint16, protocol string) error
}

// maxDevices bounds the number of devices that are queried.
const maxDevices = 4

// findUPnP searches the local network for routers, and returns the first one with an external address.
func findUPnP(ctx context.Context) (router, error) {
	for _, target := range []string{"urn:schemas-upnp-org:device:InternetGatewayDevice:1", "urn:schemas-upnp-org:device:InternetGatewayDevice:2"} {
		devices, err := goupnp.DiscoverDevicesCtx(ctx, target)
		if err != nil {
			return nil, fmt.Errorf("search for a UPnP router: %w", err)
		}
		for _, d := range devices[:min(len(devices), maxDevices)] {
			if d.Err != nil {
				continue
			}
			for _, c := range connectionsOf(d.Root, d.Location) {
				r := upnpRouter{c, selfTowards(ctx, d.Location)}
				if _, err := outsideOf(ctx, r); err == nil && r.self != "" {
					return r, nil
				}
			}
		}
	}
	return nil, errors.New("no UPnP router answers")
}

// connectionsOf returns the Internet connections of a device, of all types that UPnP defines.
func connectionsOf(root *goupnp.RootDevice, at *url.URL) (all []connection) {
	two, _ := igd.NewWANIPConnection2ClientsFromRootDevice(root, at)
	for _, c := range two {
		all = append(all, c)
	}
	one, _ := igd.NewWANIPConnection1ClientsFromRootDevice(root, at)
	for _, c := range one {
		all = append(all, c)
	}
	ppp, _ := igd.NewWANPPPConnection1ClientsFromRootDevice(root, at)
	for _, c := range ppp {
		all = append(all, c)
	}
	return all
}

// selfTowards returns this machine's address in the network of a device, or "" on failure. It sends nothing.
func selfTowards(ctx context.Context, at *url.URL) string {
	conn, err := new(net.Dialer).DialContext(ctx, "udp4", net.JoinHostPort(at.Hostname(), "9"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

func (upnpRouter) how() string { return "UPnP" }

func (r upnpRouter) address(ctx context.Context) (netip.Addr, error) {
	s, err := r.GetExternalIPAddressCtx(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(s)
}

const description = "p2pmpi"

func (r upnpRouter) addMapping(ctx context.Context, p Port, outside uint16, lasts time.Duration) (uint16, error) {
	add := func(seconds uint32) error {
		return r.AddPortMappingCtx(ctx, "", outside, strings.ToUpper(p.Protocol), p.Number, r.self, true, description, seconds)
	}
	err := add(uint32(lasts.Seconds()))
	if fault := (*soap.SOAPFaultError)(nil); errors.As(err, &fault) && fault.Detail.UPnPError.Errorcode == onlyPermanent {
		err = add(0)
	}
	return outside, err
}

// onlyPermanent is the error code of UPnP for a router that supports only permanent mappings.
const onlyPermanent = 725

func (r upnpRouter) removeMapping(ctx context.Context, p Port, outside uint16) error {
	return r.DeletePortMappingCtx(ctx, "", outside, strings.ToUpper(p.Protocol))
}
