package launch

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// A channel uses the best path that was available when it was opened. While the job runs, the peer searches
// for a better one, at growing intervals. It searches at once when the connection between the peers has
// improved: a hole was punched, or a firewall opened. The processes then reopen their channels.
//
// The processes may be unable to agree on keys over a TCP connection, because of a middlebox. This peer
// then does not offer them TCP for a while. That time doubles with each failure.

// searchTimeout bounds one search.
const searchTimeout = 10 * time.Second

// searchPaths searches for better paths to the peers whose path is not the best possible.
func (j *job) searchPaths() {
	if !j.begun || j.ended != nil {
		return
	}
	now := time.Now()
	for id, c := range j.channels {
		if c.route.kind == "" || j.local[id.from] == nil || c.route.best(j.kinds) {
			continue
		}
		s := j.searchOf(c.peer, now)
		if s.begin(now, j.improved(c)) {
			j.running.Add(1)
			go j.searchPath(probe{c.peer, id.from, id.to, j.situation(id.from, id.to)}, s) // ends within searchTimeout
		}
	}
}

func (j *job) searchOf(peer p2ppeer.ID, now time.Time) *pathSearch {
	s := j.searches[peer]
	if s == nil {
		s = newPathSearch(now)
		j.searches[peer] = s
	}
	return s
}

// improved reports whether the connection to a channel's peer is better than the one that the channel uses.
func (j *job) improved(c *openChannel) bool {
	now, ok := connection.Best(j.service.host, c.peer, j.service.config.Punches)
	return ok && c.route.kind == proclink.Stream && slices.Index(connection.Ways, now.Way) < slices.Index(connection.Ways, c.route.how)
}

// searchPath searches for a better path to a peer.
func (j *job) searchPath(p probe, s *pathSearch) {
	defer j.running.Done()
	ctx, cancel := context.WithTimeout(j.ctx, searchTimeout)
	defer cancel()
	h := j.service.host
	if c, ok := connection.Best(h, p.peer, j.service.config.Punches); ok && c.Way == connection.Relayed {
		direct, cancel := context.WithTimeout(network.WithForceDirectDial(ctx, "a better path to a peer of a job"), directDialTimeout)
		_ = h.Connect(direct, p2ppeer.AddrInfo{ID: p.peer}) // the search below shows whether it succeeded
		cancel()
	}
	j.service.retryDirect(p.peer)
	found := j.try(ctx, p)
	j.do(func() {
		s.end(time.Now())
		if found.err == nil {
			j.distances[p.peer] = found.rtt
			j.reopenWorse(p.peer, found.channelPath)
		}
	})
}

// directDialTimeout bounds a direct dial of a peer that is connected through a relay.
const directDialTimeout = 3 * time.Second

// reopenWorse makes the processes reopen those channels to a peer whose path is worse than the one found.
func (j *job) reopenWorse(peer p2ppeer.ID, found channelPath) {
	for id, c := range j.channels {
		p := j.local[id.from]
		if p == nil || c.peer != peer || c.route.kind == "" || found.rank(j.kinds) >= c.route.rank(j.kinds) {
			continue
		}
		j.log.Info().Stringer("peer", peer).Str("from", string(c.route.kind)).Str("to", string(found.kind)).Msg("a better path was found")
		p.send(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
	}
}
