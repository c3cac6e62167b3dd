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
	// maxRefusedPause. The first pauses are short, because the listener of a dying process closes milliseconds
	// after its connections have broken.
	refusedTimeout  = time.Second
	refusedPause    = 10 * time.Millisecond
	maxRefusedPause = 500 * time.Millisecond
	breakPause      = 20 * time.Millisecond // interval between checks whether the connections have broken
	// relayRefusal is the time for which a peer must be refused if it may be reachable through a relay.
	relayRefusal = 5 * time.Second
)

// Endpoints records the addresses at which another peer accepted TCP connections while this peer was connected
// to it. If such an address refuses connections later, the other peer has probably ended. The zero value is
// empty. The methods are safe for concurrent use.
type Endpoints struct {
	mu      sync.Mutex
	open    []endpoint
	probing int // number of calls of Probe in progress
}

// An endpoint is one address of a peer.
type endpoint struct {
	machine netip.Addr
	address string       // host:port
	from    *net.TCPAddr // local address to dial from, with port 0; nil for any address
}

// Probe dials the known addresses of a peer on the machines at which the peer is connected now, and records the
// addresses that accept. It takes at most probeTimeout. The results replace earlier ones, unless all dials time
// out or the peer disconnects meanwhile.
//
// A peer accepts few connections per second from one address, and Probe uses one of them. Known reports whether
// Probe is necessary.
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

// breakSoon reports whether all connections break within a moment. In that case the peer is about to end, and
// has closed its listeners first.
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

// opened returns the endpoints that count as open after a probe with these answers. before are those that counted
// as open until then. opened drops endpoints that were not tried again, since a restarted peer may have other
// ones.
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

// Known reports whether an endpoint is known on a machine at which the peer is connected now, or a Probe is in
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

// AwaitRefused returns true when the machine of a peer refuses connections to the peer's endpoints. In that case
// the peer's process has ended. last is the address at which the peer was last reached. AwaitRefused repeats its
// attempts until ctx ends, and then returns false. It dials from the local address that was accepted before,
// because a firewall may refuse connections from another network. It returns false at once if the peer was
// reached through a relay, or if no endpoint on its machine is known.
//
// If only a link has failed, there is no answer, so AwaitRefused does not return true. A firewall on the path may
// refuse connections as the machine itself would. So if one of the peer's addresses addrs leads through a relay,
// AwaitRefused returns true only if the refusal lasts for relayRefusal. The caller ends ctx if it reaches the
// peer in that time.
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

// endpoints selects those of a peer's addresses that are on the machine of the address last and use TCP.
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

// ipOf returns the IP address at the beginning of an address. It returns false for a circuit.
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

// An answer is the result of dialling an endpoint. If err is nil, from is the local address that was accepted.
type answer struct {
	endpoint
	err error
}

// accepted reports whether the peer listens at the endpoint. A reset shows this too: the listener accepts no
// further connections at the moment, and has closed this one before the dial returned.
func (a answer) accepted() bool { return a.err == nil || errors.Is(a.err, syscall.ECONNRESET) }

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
