package discovery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	manet "github.com/multiformats/go-multiaddr/net"
)

// A moves notifies its waiters that this machine has moved: its addresses have changed, a cable was
// plugged in, or it woke from sleep.
type moves struct {
	mu sync.Mutex
	ch chan struct{}
}

func newMoves() *moves { return &moves{ch: make(chan struct{})} }

// next returns a channel that is closed at the next move.
func (m *moves) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ch
}

func (m *moves) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.ch)
	m.ch = make(chan struct{})
}

const (
	lookEvery = 5 * time.Second
	slept     = 10 * time.Second // delay of a look that indicates a sleep
)

// A lookout detects moves by comparing successive observations. It is pure.
type lookout struct {
	last   time.Time // wall-clock time; the monotonic clock may stop during sleep
	usable []string  // interfaces that are up, each with its addresses
}

// look reports why this machine seems to have moved since the last look, or "".
func (l *lookout) look(now time.Time, usable []string) (why string) {
	now = now.Round(0) // strips the monotonic clock
	switch {
	case l.last.IsZero():
	case now.Sub(l.last) > lookEvery+slept:
		why = "it was asleep"
	case !slices.Equal(usable, l.usable):
		why = "its addresses have changed"
	}
	l.last, l.usable = now, usable
	return why
}

// usableInterfaces lists the interfaces that are up, each with its addresses, and all addresses of the
// machine. Loopback interfaces are left out of usable, but their addresses are in all.
func usableInterfaces() (usable []string, all []netip.Addr, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, nil, err
		}
		texts := []string{i.Name}
		for _, a := range addrs {
			texts = append(texts, a.String())
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, prefix.Addr().Unmap())
			}
		}
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagLoopback == 0 && len(addrs) > 0 {
			slices.Sort(texts[1:])
			usable = append(usable, strings.Join(texts, " "))
		}
	}
	slices.Sort(usable)
	return usable, all, nil
}

// watchMoves watches for moves until ctx ends. The host learns of new addresses up to a minute later than
// watchMoves does; they are announced then.
func (s *Service) watchMoves(ctx context.Context) {
	updated, err := s.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated), eventbus.Name("p2pmpi moves"))
	if err != nil { // returned only for wrong arguments
		s.log.Error().Err(err).Msg("watch own addresses")
		return
	}
	defer updated.Close()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var l lookout
	var announced string
	for {
		usable, all, err := usableInterfaces()
		if err != nil { // the next look detects a move
			usable, all = l.usable, nil
		}
		if why := l.look(time.Now(), usable); why != "" {
			s.log.Info().Str("why", why).Msg("this machine has moved: looking for the others anew")
			s.closeStranded(all)
			s.moves.tell()
		}
		select {
		case <-ticker.C:
		case <-updated.Out():
			if now := s.ownAddrs(); announced != now {
				if announced != "" {
					s.moves.tell()
				}
				announced = now
			}
		case <-ctx.Done():
			return
		}
	}
}

// ownAddrs returns the addresses that this host advertises, as text.
func (s *Service) ownAddrs() string {
	var texts []string
	for _, a := range s.host.Addrs() {
		texts = append(texts, a.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// closeStranded closes connections from local addresses that this machine no longer has. They carry no
// more data, and until they time out their peers would count as connected.
func (s *Service) closeStranded(have []netip.Addr) {
	if len(have) == 0 {
		return // the addresses are not known
	}
	for _, conn := range s.host.Network().Conns() {
		ip, err := manet.ToIP(conn.LocalMultiaddr())
		if err != nil {
			continue // relayed
		}
		addr, ok := netip.AddrFromSlice(ip)
		if !ok || addr.Unmap().IsUnspecified() || addr.Unmap().IsLoopback() || slices.Contains(have, addr.Unmap().WithZone("")) {
			continue
		}
		s.log.Info().Stringer("peer", conn.RemotePeer()).Stringer("from", conn.LocalMultiaddr()).Msg("closing a connection from an address that is gone")
		conn.Close()
	}
}
