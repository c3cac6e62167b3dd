package connection

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	refusedTimeout = time.Second
	refusedPause   = 500 * time.Millisecond
)

// AwaitRefused returns true when the machine on which a peer was last reached, at the
// address last, says that nobody listens there any more where the peer did: its process has
// ended. It asks again and again until ctx ends. Of a peer that was reached through a relay,
// or is not known to listen on that machine over TCP, that cannot be found out.
//
// A link that is cut does not answer, so a peer that is only cut off is not refused.
func AwaitRefused(ctx context.Context, h host.Host, peer p2ppeer.ID, last ma.Multiaddr) bool {
	at := doors(h.Peerstore().Addrs(peer), last)
	for len(at) > 0 {
		if refused(ctx, at) {
			return true
		}
		select {
		case <-time.After(refusedPause):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// doors returns where a peer listens on the machine of the address last.
func doors(addrs []ma.Multiaddr, last ma.Multiaddr) (out []string) {
	machine, ok := ipOf(last)
	if !ok {
		return nil
	}
	for _, a := range addrs {
		if ip, ok := ipOf(a); !ok || ip != machine || transportOf(a) != "tcp" {
			continue
		}
		if _, address, err := manet.DialArgs(a); err == nil {
			out = append(out, address)
		}
	}
	return out[:min(len(out), maxDoors)]
}

const maxDoors = 4 // of a peer that are tried

// ipOf returns the IP address of a direct address.
func ipOf(a ma.Multiaddr) (netip.Addr, bool) {
	if a == nil || relayOf(a) != "" {
		return netip.Addr{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// refused reports whether at least one of some addresses refuses connections, and none takes
// them.
func refused(ctx context.Context, at []string) bool {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	answers := make(chan error, len(at))
	for _, address := range at {
		go func() { // ends with ctx
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err == nil {
				conn.Close()
			}
			answers <- err
		}()
	}
	yes, no := false, false
	for range at {
		err := <-answers
		yes = yes || errors.Is(err, syscall.ECONNREFUSED)
		no = no || err == nil
	}
	return yes && !no
}
