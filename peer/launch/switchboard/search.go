package switchboard

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// This file measures the paths that the messages of the processes here take, since firewalls cannot be
// detected otherwise. It also searches for better ones.
//
// The processes may be unable to agree on keys over a TCP connection, because of a middlebox. This peer
// then does not offer them TCP for a while. That time doubles with each failure.

// measureTimeout bounds the measurement of a round trip.
const measureTimeout = time.Second

// A probe is a pair of live processes, the second on another peer.
type probe struct {
	peer      p2ppeer.ID
	from, to  view.Process
	situation situation
}

// local returns the processes here, in order.
func (b *Board) local() []view.Process { return slices.SortedFunc(maps.Keys(b.ports), compare) }

// probes returns one probe for each other peer of the job.
func (b *Board) probes() (out []probe) {
	local := b.local()
	i := slices.IndexFunc(local, b.view.Live)
	if i < 0 {
		return nil
	}
	from, seen := local[i], map[p2ppeer.ID]bool{b.Host.ID(): true}
	for _, to := range b.view.Processes() {
		peer, ok := b.table.PeerOf[to]
		if ok && !seen[peer] && b.view.Live(to) {
			seen[peer] = true
			out = append(out, probe{peer, from, to, b.situation(from, to)})
		}
	}
	return out
}

// maxProbes bounds the peers that are probed at one time.
const maxProbes = 8

// Explain probes the paths to all other peers and reports them. It then calls done on the job's goroutine.
// From then on, changes of the paths are reported too.
func (b *Board) Explain(done func()) {
	probes := b.probes()
	b.running.Go(func() { // ends with ctx
		found := b.tryAll(probes)
		b.config.Do(func() {
			routes := map[p2ppeer.ID]route{}
			if local := b.local(); len(local) > 1 {
				var w route
				w.kind, w.why = choose(b.localSituation(b.ports[local[0]], b.ports[local[1]]), b.kinds)
				routes[b.Host.ID()] = w
			}
			for i, p := range probes {
				routes[p.peer] = found[i]
				b.distances[p.peer] = found[i].rtt
			}
			b.told = make(map[p2ppeer.ID]channelPath)
			b.report(routes)
			done()
		})
	})
}

// tryAll tries the paths of the given probes, maxProbes at a time.
func (b *Board) tryAll(probes []probe) []route {
	found := make([]route, len(probes))
	var trying errgroup.Group
	trying.SetLimit(maxProbes)
	for i, p := range probes {
		trying.Go(func() error {
			found[i] = b.try(b.ctx, p)
			return nil
		})
	}
	_ = trying.Wait() // the errors are in found
	return found
}

// try reaches a peer as a channel would, and closes the connection again.
func (b *Board) try(ctx context.Context, p probe) route {
	open := &pb.Open{Job: b.config.Job, From: pbProcess(p.from), To: pbProcess(p.to), Probe: true}
	w := b.reach(ctx, p.peer, open, p.situation, b.kinds)
	if w.conn != nil {
		w.conn.Close()
	}
	if w.stream != nil {
		w.stream.Close()
	}
	if w.err == nil {
		ctx, cancel := context.WithTimeout(ctx, measureTimeout)
		defer cancel()
		w.rtt, _ = connection.RoundTrip(ctx, b.Host, p.peer)
	}
	return w
}

// reached records the path that a channel has taken, and reports it if it differs from the path reported
// before.
func (b *Board) reached(id channelID, peer p2ppeer.ID, w route) {
	if c := b.channels[id]; c != nil {
		c.route, c.peer = w, peer
	}
	if before, ok := b.told[peer]; ok && before != w.channelPath {
		w.rtt = b.distances[peer]
		b.report(map[p2ppeer.ID]route{peer: w})
	}
}

// A Path is how another peer is reached, or this peer itself.
type Path struct {
	Peer      p2ppeer.ID
	Kind      proclink.Kind  // empty: there is no path
	Way       connection.Way // empty: within this peer
	Relay     p2ppeer.ID
	RoundTrip time.Duration // 0: not measured
	Why       string        // reason why there is no better path
	Err       error         // reason why there is no path
}

// report reports how other peers are reached.
func (b *Board) report(routes map[p2ppeer.ID]route) {
	var paths []Path
	for _, peer := range slices.Sorted(maps.Keys(routes)) {
		w := routes[peer]
		if w.err != nil {
			w.channelPath = channelPath{}
		}
		b.told[peer] = w.channelPath
		paths = append(paths, Path{peer, w.kind, w.how, w.relay, w.rtt, w.why, w.err})
	}
	b.config.Report(paths)
}

// searchTimeout bounds one search.
const searchTimeout = 10 * time.Second

// SearchPaths searches for better paths to the peers whose path is not the best possible.
func (b *Board) SearchPaths() {
	now := time.Now()
	for id, c := range b.channels {
		if c.route.kind == "" || b.ports[id.from] == nil || c.route.best(b.kinds) {
			continue
		}
		s := b.searchOf(c.peer, now)
		if s.begin(now, b.improved(c)) {
			p := probe{c.peer, id.from, id.to, b.situation(id.from, id.to)}
			b.running.Go(func() { b.searchPath(p, s) }) // ends within searchTimeout
		}
	}
}

func (b *Board) searchOf(peer p2ppeer.ID, now time.Time) *pathSearch {
	s := b.searches[peer]
	if s == nil {
		s = newPathSearch(now)
		b.searches[peer] = s
	}
	return s
}

// improved reports whether the connection to a channel's peer is better than the one that the channel uses.
func (b *Board) improved(c *openChannel) bool {
	now, ok := connection.Best(b.Host, c.peer, b.Punches)
	return ok && c.route.kind == proclink.Stream && slices.Index(connection.Ways, now.Way) < slices.Index(connection.Ways, c.route.how)
}

// searchPath searches for a better path to a peer.
func (b *Board) searchPath(p probe, s *pathSearch) {
	ctx, cancel := context.WithTimeout(b.ctx, searchTimeout)
	defer cancel()
	h := b.Host
	if c, ok := connection.Best(h, p.peer, b.Punches); ok && c.Way == connection.Relayed {
		direct, cancel := context.WithTimeout(network.WithForceDirectDial(ctx, "a better path to a peer of a job"), directDialTimeout)
		_ = h.Connect(direct, p2ppeer.AddrInfo{ID: p.peer}) // the search below shows whether it succeeded
		cancel()
	}
	b.RetryDirect(p.peer)
	found := b.try(ctx, p)
	b.config.Do(func() {
		s.end(time.Now())
		if found.err == nil {
			b.distances[p.peer] = found.rtt
			b.reopenWorse(p.peer, found.channelPath)
		}
	})
}

// directDialTimeout bounds a direct dial of a peer that is connected through a relay.
const directDialTimeout = 3 * time.Second

// reopenWorse makes the processes reopen those channels to a peer whose path is worse than the one found.
func (b *Board) reopenWorse(peer p2ppeer.ID, found channelPath) {
	for id, c := range b.channels {
		p := b.ports[id.from]
		if p == nil || c.peer != peer || c.route.kind == "" || found.rank(b.kinds) >= c.route.rank(b.kinds) {
			continue
		}
		b.config.Log.Info().Stringer("peer", peer).Str("from", string(c.route.kind)).Str("to", string(found.kind)).Msg("a better path was found")
		p.Send(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
	}
}

// Renew makes the processes reopen their channels to a peer, because the connection to that peer has changed.
func (b *Board) Renew(peer p2ppeer.ID) {
	if s := b.searches[peer]; s != nil {
		s.reset()
	}
	for id := range b.channels {
		if p := b.ports[id.from]; p != nil && b.table.PeerOf[id.to] == peer {
			p.Send(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
		}
	}
}

// RetryDirect lets the next channel to a peer try a direct connection again.
func (s *Service) RetryDirect(peer p2ppeer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.obstacles, peer)
}
