package launch

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
)

// A channel goes the best way that there was when it was opened. While the job runs a better
// one is looked for, ever more rarely, and at once when the peers' connection has become
// better: a hole was punched, or a firewall opened. Then the processes open their channels
// anew. Where a TCP connection can be made and they cannot agree on keys over it, for what
// stands between, it is not offered to them again for a while, which doubles each time.

// seekTimeout bounds one look.
const seekTimeout = 10 * time.Second

// seek looks for better ways to the peers to which there may be some.
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

// improved reports whether the connection with a channel's peer is better than the one that
// the channel goes by.
func (j *job) improved(c *openChannel) bool {
	now, ok := connection.Best(j.service.host, c.peer, j.service.config.Punches)
	return ok && c.way.kind == proclink.Stream && slices.Index(connection.Ways, now.Way) < slices.Index(connection.Ways, c.way.how)
}

// lookFor looks for a better way to a peer.
func (j *job) lookFor(p probe, s *seeking) {
	defer j.running.Done()
	ctx, cancel := context.WithTimeout(j.ctx, seekTimeout)
	defer cancel()
	h := j.service.host
	if c, ok := connection.Best(h, p.peer, j.service.config.Punches); ok && c.Way == connection.Relayed {
		direct, cancel := context.WithTimeout(network.WithForceDirectDial(ctx, "a better way"), directDialTimeout)
		_ = h.Connect(direct, p2ppeer.AddrInfo{ID: p.peer}) // the way that is found says what came of it
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

// takeOver has the channels to a peer opened anew that go a worse way than one that there is.
func (j *job) takeOver(peer p2ppeer.ID, found passage) {
	for id, c := range j.channels {
		p := j.local[id.from]
		if p == nil || c.peer != peer || c.way.kind == "" || found.rank(j.kinds) >= c.way.rank(j.kinds) {
			continue
		}
		j.log.Info().Stringer("peer", peer).Str("from", string(c.way.kind)).Str("to", string(found.kind)).Msg("a better way was found")
		p.tell(proclink.Message{Type: proclink.Reopen, Process: &id.to}, nil)
	}
}
