package discovery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/redial"
)

// rejoinEvery is the interval between reconnect attempts.
const rejoinEvery = 5 * time.Second

// A memory makes acquaintances safe for concurrent use and keeps them in a file.
type memory struct {
	file string        // empty: they are not kept
	news chan struct{} // holds an element if a peer was heard of since the last round

	mu    sync.Mutex
	q     *acquaintances
	saved int // value of q.changes at the last save
}

func newMemory(file string) (*memory, error) {
	q, err := recall(file, time.Now())
	if err != nil {
		return nil, err
	}
	return &memory{file: file, q: q, news: make(chan struct{}, 1)}, nil
}

// heard records a hint and wakes rejoinLoop. It never blocks.
func (m *memory) heard(info p2ppeer.AddrInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.q.heard(info)
	select {
	case m.news <- struct{}{}:
	default:
	}
}

func (m *memory) met(info p2ppeer.AddrInfo, reached bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.q.met(info, reached, time.Now())
}

func (m *memory) failed(id p2ppeer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.q.failed(id, time.Now())
}

func (m *memory) hurry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.q.hurry()
}

func (m *memory) isNews(id p2ppeer.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.q.isNews(id)
}

func (m *memory) due(connected func(p2ppeer.ID) bool) []p2ppeer.AddrInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.q.due(time.Now(), connected)
}

// count returns the number of known peers.
func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.q.all)
}

func (m *memory) ids() []p2ppeer.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []p2ppeer.ID
	for id := range m.q.all {
		out = append(out, id)
	}
	return out
}

// save writes the file if something has changed.
func (m *memory) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == "" || m.saved == m.q.changes {
		return nil
	}
	m.saved = m.q.changes // set even on failure, so that a full disk is not retried every time
	return m.q.remember(m.file)
}

// connected reports whether a connection to a peer is open, direct or relayed.
func (s *Service) connected(id p2ppeer.ID) bool {
	c := s.host.Network().Connectedness(id)
	return c == network.Connected || c == network.Limited
}

// alone reports whether no peer of the network is connected.
func (s *Service) alone() bool {
	for _, id := range s.memory.ids() {
		if s.connected(id) {
			return false
		}
	}
	return true
}

// rejoinLoop reconnects to known peers until ctx ends, and saves their file.
func (s *Service) rejoinLoop(ctx context.Context) {
	moved := s.moves.next()
	for ctx.Err() == nil {
		more := s.rejoin(ctx)
		s.intro.tried(len(s.cfg.Supernodes) == 0)
		if err := s.memory.save(); err != nil {
			s.log.Warn().Err(err).Msg("after a restart they have to be found anew")
		}
		if more {
			continue
		}
		select {
		case <-time.After(rejoinEvery):
		case <-s.memory.news:
		case <-moved:
			moved = s.moves.next()
			s.memory.hurry()
			s.rejoin(ctx)
			s.meetOthers(ctx)
		case <-ctx.Done():
		}
	}
}

// rejoin tries the known peers that are due, and reports whether more may be due. If one is reached that
// was unreachable or never met before, rejoin meets the other peers through it.
func (s *Service) rejoin(ctx context.Context) bool {
	wasAlone := s.alone()
	due := s.memory.due(s.connected)
	news := make(chan bool, len(due))
	var group sync.WaitGroup
	for _, info := range due {
		group.Go(func() { news <- s.again(ctx, info) })
	}
	group.Wait()
	close(news)
	found := false
	for n := range news {
		found = found || n
	}
	if found || wasAlone && len(due) > 0 && !s.alone() {
		s.meetOthers(ctx)
	}
	return len(due) == atOnce
}

// again connects to a known peer and reports whether that is news (see isNews). It clears libp2p's dial
// backoff, because due spaces the attempts.
func (s *Service) again(ctx context.Context, info p2ppeer.AddrInfo) bool {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AskTimeout)
	defer cancel()
	news := s.memory.isNews(info.ID)
	redial.Allow(s.host, info.ID)
	err := s.host.Connect(ctx, info)
	if err == nil {
		err = s.checkMember(info.ID)
	}
	if err != nil {
		s.memory.failed(info.ID)
		s.log.Debug().Err(err).Stringer("peer", info.ID).Msg("acquaintance not reached")
		return false
	}
	s.memory.met(s.addrsOf(info), true)
	s.askForTwin(ctx, info.ID)
	return news
}

// identifiedWithin is how long a connection may stay open while the protocols of its peer are unknown. A
// peer that refuses this one reports the reason within that time.
const identifiedWithin = 5 * time.Second

// checkMember returns nil if a connected peer belongs to this network and serves its DHT. If the peer's
// protocols are unknown, checkMember closes connections older than identifiedWithin; the next connection
// asks again.
func (s *Service) checkMember(id p2ppeer.ID) error {
	protocols, err := s.host.Peerstore().GetProtocols(id)
	if err != nil {
		return err
	}
	if len(protocols) > 0 {
		return checkNetwork(s.cfg.Network, protocols)
	}
	silent := errors.New("it answers, but does not say what it is: it may have too much to do")
	for _, c := range s.host.Network().ConnsToPeer(id) { // libp2p identifies each connection only once
		if time.Since(c.Stat().Opened) > identifiedWithin {
			silent = errors.Join(silent, c.Close())
		}
	}
	return silent
}

// addrsOf adds the peerstore's addresses to those of info, which come first. Other peers may have
// supplied them, so it drops those that MayDial rejects; they would otherwise be dialled after a restart.
func (s *Service) addrsOf(info p2ppeer.AddrInfo) p2ppeer.AddrInfo {
	known := s.host.Peerstore().Addrs(info.ID)
	if s.cfg.MayDial != nil {
		known = slices.DeleteFunc(known, func(a ma.Multiaddr) bool { return !s.cfg.MayDial(info.ID, a) })
	}
	info.Addrs = mergeAddrs(info.Addrs, known)
	return info
}

// acquaintLoop records every connected peer of the network as known, whichever side dialled.
func (s *Service) acquaintLoop(ctx context.Context) {
	identified, err := s.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted), eventbus.Name("p2pmpi acquaintances"))
	if err != nil { // returned only for wrong arguments
		s.log.Error().Err(err).Msg("watch who connects")
		return
	}
	defer identified.Close()
	for {
		select {
		case e, ok := <-identified.Out():
			if !ok {
				return
			}
			s.acquaint(e.(event.EvtPeerIdentificationCompleted))
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) acquaint(e event.EvtPeerIdentificationCompleted) {
	if e.Conn == nil || s.checkMember(e.Peer) != nil {
		return
	}
	reached := e.Conn.Stat().Direction == network.DirOutbound
	info := p2ppeer.AddrInfo{ID: e.Peer}
	if reached {
		info.Addrs = []ma.Multiaddr{e.Conn.RemoteMultiaddr()}
	}
	s.memory.met(s.addrsOf(info), reached)
}
