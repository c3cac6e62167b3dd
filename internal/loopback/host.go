package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// Host is a libp2p host that can also open streams to itself.
type Host struct {
	host.Host
	work *background.Work // the handlers of streams to itself

	mu       sync.Mutex // also held while work is stopped
	handlers map[protocol.ID]network.StreamHandler
}

// Wrap returns h, extended with streams to itself.
func Wrap(h host.Host) *Host {
	return &Host{Host: h, work: background.New(context.Background()), handlers: make(map[protocol.ID]network.StreamHandler)}
}

// SetStreamHandler implements host.Host.
func (h *Host) SetStreamHandler(pid protocol.ID, handler network.StreamHandler) {
	h.mu.Lock()
	h.handlers[pid] = handler
	h.mu.Unlock()
	h.Host.SetStreamHandler(pid, handler)
}

// RemoveStreamHandler implements host.Host.
func (h *Host) RemoveStreamHandler(pid protocol.ID) {
	h.mu.Lock()
	delete(h.handlers, pid)
	h.mu.Unlock()
	h.Host.RemoveStreamHandler(pid)
}

// NewStream implements host.Host. A stream to the host itself is served by the handler of the first
// protocol that has one.
func (h *Host) NewStream(ctx context.Context, p p2ppeer.ID, pids ...protocol.ID) (network.Stream, error) {
	if p != h.ID() {
		return h.Host.NewStream(ctx, p, pids...)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.work.Context().Err() != nil {
		return nil, errors.New("open stream to self: host is closed")
	}
	for _, pid := range pids {
		if handler, ok := h.handlers[pid]; ok {
			return h.open(pid, handler)
		}
	}
	return nil, fmt.Errorf("open stream to self: no handler for %v", pids)
}

func (h *Host) open(pid protocol.ID, handler network.StreamHandler) (network.Stream, error) {
	near, far, err := pair()
	if err != nil {
		return nil, fmt.Errorf("open stream to self: %w", err)
	}
	state := &shared{}
	ours := &stream{UnixConn: near, host: h, protocol: pid, shared: state, direction: network.DirOutbound}
	theirs := &stream{UnixConn: far, host: h, protocol: pid, shared: state, direction: network.DirInbound}
	for _, s := range []*stream{ours, theirs} {
		s.forget = context.AfterFunc(h.work.Context(), func() { s.Reset() })
	}
	h.work.Go(func(context.Context) { handler(theirs) }) // ends with the handler, which Close unblocks
	return ours, nil
}

func pair() (near, far *net.UnixConn, err error) {
	a, b, err := proclink.SocketPair()
	if err != nil {
		return nil, nil, err
	}
	if near, err = unixConn(a); err != nil {
		b.Close()
		return nil, nil, err
	}
	if far, err = unixConn(b); err != nil {
		near.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// unixConn converts f to a connection and closes f.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil // SocketPair creates no other kind
}

// Close resets the host's streams to itself, waits for their handlers, and closes the host.
func (h *Host) Close() error {
	h.mu.Lock()
	h.work.Stop()
	h.mu.Unlock()
	err := h.Host.Close()
	h.work.Wait()
	return err
}
