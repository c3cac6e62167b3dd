package punch

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-reuseport"
	ma "github.com/multiformats/go-multiaddr"
)

// A port is a local port that several outgoing connections share, and on which this peer does not listen. Peers at
// different addresses report the addresses at which they observe this port, which show how the router translates
// ports. The zero value chooses a free port. Its methods are safe for concurrent use.
type port struct {
	mu     sync.Mutex
	number map[string]int // by network, tcp4 and tcp6
}

var _ tcp.ContextDialer = (*port)(nil)

func (p *port) dialer(ma.Multiaddr) (tcp.ContextDialer, error) { return p, nil }

// DialContext dials from the port if possible, and otherwise from any other port. A second connection from the
// port to the same address is not possible, nor is a new one while the kernel remembers the first.
func (p *port) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var elsewhere net.Dialer
	from := p.of(network)
	if from == 0 {
		return elsewhere.DialContext(ctx, network, address)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{Port: from}, Control: reuseport.Control}
	c, err := d.DialContext(ctx, network, address)
	if call, ok := errors.AsType[*os.SyscallError](err); ok && call.Syscall == "bind" {
		p.isTaken(network, from)
		return elsewhere.DialContext(ctx, network, address)
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EADDRINUSE) {
		return elsewhere.DialContext(ctx, network, address)
	}
	return c, err
}

// of returns the number of the port, or 0 if no port is free.
func (p *port) of(network string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number == nil {
		p.number = make(map[string]int)
	}
	if p.number[network] == 0 {
		if l, err := reuseport.Listen(network, ":0"); err == nil {
			p.number[network] = l.Addr().(*net.TCPAddr).Port
			l.Close()
		}
	}
	return p.number[network]
}

// isTaken discards the port, which another process now uses, so that the next call of of chooses another.
func (p *port) isTaken(network string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number[network] == number {
		delete(p.number, network)
	}
}
