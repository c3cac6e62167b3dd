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
)

const (
	knockTimeout = 3 * time.Second
	// refusedTimeout bounds one attempt. The pauses between attempts double, from refusedPause to
	// maxRefusedPause: the listener of a process that is dying closes milliseconds after its
	// connections have broken.
	refusedTimeout  = time.Second
	refusedPause    = 10 * time.Millisecond
	maxRefusedPause = 500 * time.Millisecond
	goesPause       = 20 * time.Millisecond // between two looks whether connections have broken
	// relayPatience is how long a peer must be refused that may be reached through a relay.
	relayPatience = 5 * time.Second
)

// Doors are where one other peer has been seen to take TCP connections while this one was
// connected with it, so that it says something when they are refused there. The zero value
// knows of none. Its methods are safe for concurrent use.
type Doors struct {
	mu       sync.Mutex
	open     []door
	knocking int // how many times at once
}

// A door is one address of a peer.
type door struct {
	machine netip.Addr
	address string       // host:port
	from    *net.TCPAddr // of this machine, with any port; nil: whichever
}

// Knock finds out which doors of a peer are open, of those that it is known to have on the
// machines where it is connected now. It takes 3 s at most. What was found before is
// forgotten, unless all that comes of it is that time runs out, or the peer goes meanwhile.
//
// It costs the peer's listener a connection of the few that it takes from one address in a
// second: see Known.
func (d *Doors) Knock(ctx context.Context, h host.Host, peer p2ppeer.ID) {
	ctx, cancel := context.WithTimeout(ctx, knockTimeout)
	defer cancel()
	d.mu.Lock()
	d.knocking++
	d.mu.Unlock()
	var known []door
	conns := h.Network().ConnsToPeer(peer)
	for _, c := range conns {
		known = append(known, doors(h.Peerstore().Addrs(peer), c.RemoteMultiaddr())...)
	}
	answers := dialAll(ctx, known[:min(len(known), maxDoors)])
	gone := len(conns) == 0 || len(answers) > 0 && !slices.ContainsFunc(answers, answer.letIn) && goes(ctx, conns)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.knocking--; !gone {
		d.open = opened(answers, d.open)
	}
}

// goes reports whether all connections break within a moment: their peer ends just now, and its doors
// have been shut first.
func goes(ctx context.Context, conns []network.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	for {
		if !slices.ContainsFunc(conns, func(c network.Conn) bool { return !c.IsClosed() }) {
			return true
		}
		select {
		case <-time.After(goesPause):
		case <-ctx.Done():
			return false
		}
	}
}

// opened returns the doors that are open as far as is known, where those before were. Of what was
// not tried again nothing is known: a peer that has begun anew has other doors.
func opened(answers []answer, before []door) (open []door) {
	var silent []door
	refused := false
	for _, a := range answers {
		timeout, ok := errors.AsType[net.Error](a.err)
		was := slices.IndexFunc(before, func(b door) bool { return b.address == a.address })
		switch {
		case a.letIn():
			open = append(open, a.door)
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

// Known reports whether an open door is known on a machine where the peer is connected now, or
// being looked for.
func (d *Doors) Known(h host.Host, peer p2ppeer.ID) bool {
	d.mu.Lock()
	knocking := d.knocking > 0
	d.mu.Unlock()
	return knocking || slices.ContainsFunc(h.Network().ConnsToPeer(peer), func(c network.Conn) bool {
		return len(d.of(c.RemoteMultiaddr())) > 0
	})
}

// of returns the open doors on the machine of the address last.
func (d *Doors) of(last ma.Multiaddr) (out []door) {
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

// AwaitRefused returns true when the machine on which the peer was last reached, at the
// address last, says that nobody listens there any more where the peer did: its process has
// ended. It asks again and again until ctx ends, from the address from which it was let in
// before: another network may refuse anything. Of a peer that was reached through a relay, or
// of which no door there was seen open, that cannot be found out: false at once.
//
// A link that is cut does not answer, so a peer that is only cut off is not refused. A firewall
// between may refuse as the machine would: of addrs, where the peer is, those through
// relays are given some seconds, in which ctx ends if the peer is reached.
func (d *Doors) AwaitRefused(ctx context.Context, last ma.Multiaddr, addrs []ma.Multiaddr) bool {
	at := d.of(last)
	patience := time.Duration(0)
	if slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return RelayOf(a) != "" }) {
		patience = relayPatience
	}
	var since time.Time // when it was refused first, and not let in after
	for pause := refusedPause; len(at) > 0; pause = min(2*pause, maxRefusedPause) {
		switch yes := refused(ctx, at); {
		case !yes:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= patience {
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

// doors returns where a peer may listen on the machine of the address last.
func doors(addrs []ma.Multiaddr, last ma.Multiaddr) (out []door) {
	machine, ok := ipOf(last)
	if !ok {
		return nil
	}
	for _, a := range addrs {
		if ip, ok := ipOf(a); !ok || ip != machine || transportOf(a) != "tcp" {
			continue
		}
		_, address, err := manet.DialArgs(a)
		if err == nil && !slices.ContainsFunc(out, func(d door) bool { return d.address == address }) {
			out = append(out, door{machine: machine, address: address})
		}
	}
	return out[:min(len(out), maxDoors)]
}

const maxDoors = 4 // of a peer that are tried

// ipOf returns the IP address of a direct address.
func ipOf(a ma.Multiaddr) (netip.Addr, bool) {
	if a == nil || RelayOf(a) != "" {
		return netip.Addr{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// refused reports whether at least one of some doors refuses connections, and none takes
// them.
func refused(ctx context.Context, at []door) bool {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	yes, no := false, false
	for _, a := range dialAll(ctx, at) {
		yes = yes || errors.Is(a.err, syscall.ECONNREFUSED)
		no = no || a.letIn()
	}
	return yes && !no
}

// An answer is what came of dialling a door: err, or from where it let this machine in.
type answer struct {
	door
	err error
}

// letIn reports whether somebody listens there: also one who takes no more just now, and ends
// the connection before it is known here that it was made.
func (a answer) letIn() bool { return a.err == nil || errors.Is(a.err, syscall.ECONNRESET) }

// dialAll dials doors at the same time, each for a moment.
func dialAll(ctx context.Context, at []door) []answer {
	out := make([]answer, len(at))
	var dials sync.WaitGroup
	for i, d := range at {
		dials.Go(func() { out[i] = dial(ctx, d) }) // ends with ctx
	}
	dials.Wait()
	return out
}

func dial(ctx context.Context, d door) answer {
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
