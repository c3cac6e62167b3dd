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

// rejoinEvery is how often it is looked whether somebody is to be connected to again.
const rejoinEvery = 5 * time.Second

// A memory is the acquaintances as several goroutines use them, and their file.
type memory struct {
	file string        // "": they are not kept
	news chan struct{} // holds one when somebody was heard of

	mu    sync.Mutex
	q     *acquaintances
	saved int // q.changes of what stands in the file
}

func newMemory(file string) (*memory, error) {
	q, err := recall(file, time.Now())
	if err != nil {
		return nil, err
	}
	return &memory{file: file, q: q, news: make(chan struct{}, 1)}, nil
}

// heard notes a hint, and has it followed soon. It never blocks.
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

// count is how many peers there are to try.
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

// save writes what has changed.
func (m *memory) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == "" || m.saved == m.q.changes {
		return nil
	}
	m.saved = m.q.changes // a full disk is not tried again every time
	return m.q.remember(m.file)
}

// connected reports whether a connection to a peer is open.
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

// rejoinLoop connects to acquaintances again, for ever, and keeps their file.
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

// rejoin tries the acquaintances that are due, and reports whether there may be more.
// Through the first that is reached after it was not, or was never met, it makes the
// acquaintance of the others there.
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

// again connects to an acquaintance, and reports whether it is there as it was not before.
// Its tries are spaced.
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

// identifiedWithin is how long a connection may be without that its other side is known to say
// anything. One that refuses this peer says why meanwhile.
const identifiedWithin = 5 * time.Second

// checkMember returns nil if a connected peer is of our network and serves its DHT. Connections
// with one that is not known to say anything are closed after a while: on the next one it is asked again.
func (s *Service) checkMember(id p2ppeer.ID) error {
	protocols, err := s.host.Peerstore().GetProtocols(id)
	if err != nil {
		return err
	}
	if len(protocols) > 0 {
		return checkNetwork(s.cfg.Network, protocols)
	}
	silent := errors.New("it answers, but does not say what it is: it may have too much to do")
	for _, c := range s.host.Network().ConnsToPeer(id) { // libp2p asks once in the life of each
		if time.Since(c.Stat().Opened) > identifiedWithin {
			silent = errors.Join(silent, c.Close())
		}
	}
	return silent
}

// addrsOf completes what is known of a peer's addresses: those of info first. Others than it may have
// named them: one at which it is not dialled now is not to be dialled after a restart.
func (s *Service) addrsOf(info p2ppeer.AddrInfo) p2ppeer.AddrInfo {
	known := s.host.Peerstore().Addrs(info.ID)
	if s.cfg.MayDial != nil {
		known = slices.DeleteFunc(known, func(a ma.Multiaddr) bool { return !s.cfg.MayDial(info.ID, a) })
	}
	info.Addrs = mergeAddrs(info.Addrs, known)
	return info
}

// acquaintLoop makes the acquaintance of every peer of the network with which there is a
// connection, whoever made it.
func (s *Service) acquaintLoop(ctx context.Context) {
	identified, err := s.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted), eventbus.Name("p2pmpi acquaintances"))
	if err != nil { // only ever about the arguments
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
