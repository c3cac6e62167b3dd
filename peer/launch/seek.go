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

// seekTimeout bounds one search.
const seekTimeout = 10 * time.Second

// seek searches for better paths to the peers whose path is not the best possible.
func (j *job) seek() {
	if !j.begun || j.ended != nil {
		return
	}
	now := time.Now()
	for id, c := range j.channels {
		if c.way.kind == "" || j.local[id.from] == nil || c.way.best(j.kinds) {
			continue
		}
		s := j.seekingOf(c.peer, now)
		if s.begin(now, j.improved(c)) {
			j.running.Add(1)
			go j.lookFor(probe{c.peer, id.from, id.to, j.situation(id.from, id.to)}, s) // ends within seekTimeout
		}
	}
}

func (j *job) seekingOf(peer p2ppeer.ID, now time.Time) *seeking {
	s := j.seekings[peer]
	if s == nil {
		s = newSeeking(now)
		j.seekings[peer] = s
	}
	return s
}

// improved reports whether the connection to a channel's peer is better than the one that the channel uses.
func (j *job) improved(c *openChannel) bool {
	now, ok := connection.Best(j.service.host, c.peer, j.service.config.Punches)
	return ok && c.way.kind == proclink.Stream && slices.Index(connection.Ways, now.Way) < slices.Index(connection.Ways, c.way.how)
}

// lookFor searches for a better path to a peer.
func (j *job) lookFor(p probe, s *seeking) {
	defer j.running.Done()
	ctx, cancel := context.WithTimeout(j.ctx, seekTimeout)
	defer cancel()
	h := j.service.host
	if c, ok := connection.Best(h, p.peer, j.service.config.Punches); ok && c.Way == connection.Relayed {
		direct, cancel := context.WithTimeout(network.WithForceDirectDial(ctx, "a better path to a peer of a job"), directDialTimeout)
		_ = h.Connect(direct, p2ppeer.AddrInfo{ID: p.peer}) // the search below shows whether it succeeded
		cancel()
	}
	j.service.retry(p.peer)
	found := j.try(ctx, p)
	j.do(func() {
		s.end(time.Now())
		if found.err == nil {
			j.distances[p.peer] = found.rtt
			j.takeOver(p.peer, found.passage)
		}
	})
}

// directDialTimeout bounds a direct dial of a peer that is connected through a relay.
const directDialTimeout = 3 * time.Second

// takeOver makes the processes reopen those channels to a peer whose path is worse than the one found.
func (j *job) takeOver(peer p2ppeer.ID, found passage) {
	for id, c := range j.channels {
		p := j.local[id.from]
		if p == nil || c.peer != peer || c.way.kind == "" || found.rank(j.kinds) >= c.way.rank(j.kinds) {
			continue
		}
		j.log.Info().Stringer("peer", peer).Str("from", string(c.way.kind)).Str("to", string(found.kind)).Msg("a better path was found")
		p.tell(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
	}
}
