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

// A port is one that all connections share which are made from it, and at which nobody listens: as others at
// several places see it, they tell how the routers between translate it. The zero port is one that is free.
// Several goroutines may dial from it.
type port struct {
	mu     sync.Mutex
	number map[string]int // of each network, tcp4 and tcp6
}

var _ tcp.ContextDialer = (*port)(nil)

// dialer is a tcp.DialerForAddr.
func (p *port) dialer(ma.Multiaddr) (tcp.ContextDialer, error) { return p, nil }

// DialContext dials from the port, or from any other where that cannot be: a connection from there to the same
// address may not have been forgotten yet.
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

// of returns the number of the port; 0: none is free.
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

// isTaken has another one found: somebody else has this one.
func (p *port) isTaken(network string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number[network] == number {
		delete(p.number, network)
	}
}
