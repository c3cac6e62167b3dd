package connection

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
)

const (
	probeTimeout = 3 * time.Second
	// refusedTimeout bounds one attempt. The pauses between attempts double, from refusedPause to
	// maxRefusedPause. The listener of a dying process closes milliseconds after its connections have
	// broken.
	refusedTimeout  = time.Second
	refusedPause    = 10 * time.Millisecond
	maxRefusedPause = 500 * time.Millisecond
	breakPause      = 20 * time.Millisecond // between two checks whether the connections have broken
	// relayRefusal is the time for which a peer must be refused if it may be reachable through a relay.
	relayRefusal = 5 * time.Second
)

// Endpoints are the addresses at which another peer accepted TCP connections while this one was connected to
// it. A refused connection to such an address is evidence that the peer has ended. The zero value is empty.
// Its methods are safe for concurrent use.
type Endpoints struct {
	mu      sync.Mutex
	open    []endpoint
	probing int // number of calls of Probe in progress
}

// An endpoint is one address of a peer.
type endpoint struct {
	machine netip.Addr
	address string       // host:port
	from    *net.TCPAddr // local address with any port; nil for any
}

// Probe dials the known addresses of a peer on the machines where it is connected now, and records those
// that accept. It takes 3 s at most. It replaces earlier results, unless all dials timed out, or the peer
// disconnects meanwhile.
//
// Probe uses up one of the few connections that the peer's listener accepts from one address per second:
// see Known.
func (d *Endpoints) Probe(ctx context.Context, h host.Host, peer p2ppeer.ID) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	d.mu.Lock()
	d.probing++
	d.mu.Unlock()
	var known []endpoint
	conns := h.Network().ConnsToPeer(peer)
	for _, c := range conns {
		known = append(known, endpoints(h.Peerstore().Addrs(peer), c.RemoteMultiaddr())...)
	}
	answers := dialAll(ctx, known[:min(len(known), maxEndpoints)])
	gone := len(conns) == 0 || len(answers) > 0 && !slices.ContainsFunc(answers, answer.accepted) && breakSoon(ctx, conns)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probing--; !gone {
		d.open = opened(answers, d.open)
	}
}

// breakSoon reports whether all connections break within a moment. The peer is then about to end, and has
// closed its listeners first.
func breakSoon(ctx context.Context, conns []network.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	for {
		if !slices.ContainsFunc(conns, func(c network.Conn) bool { return !c.IsClosed() }) {
			return true
		}
		select {
		case <-time.After(breakPause):
		case <-ctx.Done():
			return false
		}
	}
}

// opened returns the endpoints that are open as far as is known; before are the endpoints known so far. It
// drops endpoints that were not tried again, since a restarted peer may have other ones.
func opened(answers []answer, before []endpoint) (open []endpoint) {
	var silent []endpoint
	refused := false
	for _, a := range answers {
		timeout, ok := errors.AsType[net.Error](a.err)
		was := slices.IndexFunc(before, func(b endpoint) bool { return b.address == a.address })
		switch {
		case a.accepted():
			open = append(open, a.endpoint)
		case !ok || !timeout.Timeout():
			refused = true
		case was >= 0:
			silent = append(silent, before[was])
		}
	}
	if len(open) == 0 && !refused {
		return silent
	}
	return open
}

// Known reports whether an endpoint is known on a machine where the peer is connected now, or a search is in
// progress.
func (d *Endpoints) Known(h host.Host, peer p2ppeer.ID) bool {
	d.mu.Lock()
	probing := d.probing > 0
	d.mu.Unlock()
	return probing || slices.ContainsFunc(h.Network().ConnsToPeer(peer), func(c network.Conn) bool {
		return len(d.of(c.RemoteMultiaddr())) > 0
	})
}

// of returns the open endpoints on the machine of the address last.
func (d *Endpoints) of(last ma.Multiaddr) (out []endpoint) {
	machine, ok := ipOf(last)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.open {
		if o.machine == machine {
			out = append(out, o)
		}
	}
	return out
}

// AwaitRefused returns true when the machine at last, the address where the peer was last reached, refuses
// connections to the peer's endpoints: the peer's process has ended. It repeats its attempts until ctx
// ends. It dials from the local address that was accepted before, because a firewall may refuse connections
// from another network. It returns false at once if the peer was reached through a relay, or if no endpoint
// on that machine is known.
//
// If only a link has failed, there is no answer, so AwaitRefused does not report the peer. A firewall in
// between may refuse connections like the machine itself. If some of the peer's addresses addrs lead
// through relays, the refusal must therefore last some seconds. The caller ends ctx if it reaches the peer
// in that time.
func (d *Endpoints) AwaitRefused(ctx context.Context, last ma.Multiaddr, addrs []ma.Multiaddr) bool {
	at := d.of(last)
	refusal := time.Duration(0)
	if slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return connected.RelayOf(a) != "" }) {
		refusal = relayRefusal
	}
	var since time.Time // start of the present refusal
	for pause := refusedPause; len(at) > 0; pause = min(2*pause, maxRefusedPause) {
		switch yes := refused(ctx, at); {
		case !yes:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= refusal {
			return true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// endpoints returns the addresses at which a peer may listen on the machine of the address last.
func endpoints(addrs []ma.Multiaddr, last ma.Multiaddr) (out []endpoint) {
	machine, ok := ipOf(last)
	if !ok {
		return nil
	}
	for _, a := range addrs {
		if ip, ok := ipOf(a); !ok || ip != machine || transportOf(a) != "tcp" {
			continue
		}
		_, address, err := manet.DialArgs(a)
		if err == nil && !slices.ContainsFunc(out, func(d endpoint) bool { return d.address == address }) {
			out = append(out, endpoint{machine: machine, address: address})
		}
	}
	return out[:min(len(out), maxEndpoints)]
}

const maxEndpoints = 4 // number of endpoints of a peer that are tried

// ipOf returns the IP address of a direct address.
func ipOf(a ma.Multiaddr) (netip.Addr, bool) {
	if a == nil || connected.RelayOf(a) != "" {
		return netip.Addr{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// refused reports whether at least one of the endpoints refuses connections, and none accepts them.
func refused(ctx context.Context, at []endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	yes, no := false, false
	for _, a := range dialAll(ctx, at) {
		yes = yes || errors.Is(a.err, syscall.ECONNREFUSED)
		no = no || a.accepted()
	}
	return yes && !no
}

// An answer is the result of dialling an endpoint: err, or the local address that was accepted.
type answer struct {
	endpoint
	err error
}

// accepted reports whether the peer listens at the endpoint. A reset also counts: the listener accepts no
// more at the moment, and has closed the connection before the dial returned.
func (a answer) accepted() bool { return a.err == nil || errors.Is(a.err, syscall.ECONNRESET) }

// dialAll dials all endpoints at the same time.
func dialAll(ctx context.Context, at []endpoint) []answer {
	out := make([]answer, len(at))
	var dials sync.WaitGroup
	for i, d := range at {
		dials.Go(func() { out[i] = dial(ctx, d) }) // ends with ctx
	}
	dials.Wait()
	return out
}

func dial(ctx context.Context, d endpoint) answer {
	dialer := new(net.Dialer)
	if d.from != nil {
		dialer.LocalAddr = d.from
	}
	conn, err := dialer.DialContext(ctx, "tcp", d.address)
	if err != nil {
		return answer{d, err}
	}
	if local, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		d.from = &net.TCPAddr{IP: local.IP, Zone: local.Zone}
	}
	conn.Close()
	return answer{d, nil}
}
