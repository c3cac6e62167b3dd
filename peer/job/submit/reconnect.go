package submit

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A disconnected peer has not failed. When its control stream breaks, the submitter reopens it, as
// a submitter that was cut off does (disconnected.go), while the rest of the job continues:
//
//	the stream breaks --+-- the peer answers -------------> resumed: missed messages are repeated
//	                    |     that it does not know the job -> lost
//	                    +-- its machine refuses
//	                    |     connections to the peer ------> lost, at once (F2)
//	                    '-- the detector finds it silent ---> lost, after the tolerated hang;
//	                        while it stages, before there is a detector: after lull() if
//	                        another peer is free, else after waits.disconnected

var errRefused = errors.New("its machine refuses connections, so its process has ended")

// mayReconnect reports whether to reopen a broken stream: the peer neither ended it nor sent garbage,
// and it stages the job or has begun it. In the short time between, a broken stream means that the
// peer failed.
func (e *execution) mayReconnect(l *link, err error) bool {
	return (e.begin != nil || e.staging) && l.recruit == nil && l.stream != nil && l.peer != e.j.s.cfg.Host.ID() && !endedByPeer(err) && !garbled(err)
}

// reconnect starts to reopen the stream to a peer, and to check whether the peer still runs.
func (e *execution) reconnect(l *link, err error) *job.Result {
	e.j.log.Info().Stringer("peer", l.peer).Err(err).Msg("the control stream broke")
	last := l.stream.Conn().RemoteMultiaddr()
	r := e.disconnect(l, err)
	w := l.wire
	ctx, cancel := context.WithCancel(l.ctx)
	l.stopProbe = cancel
	l.running.Go(func() { // ends with the link, or when the stream is there
		defer cancel()
		if l.endpoints.AwaitRefused(ctx, last, e.j.s.cfg.Host.Peerstore().Addrs(l.peer)) {
			e.peers.inbox.put(received{link: l, wire: w, err: errRefused})
		}
	})
	return r
}

// probeAddresses finds out at which addresses a running peer accepts connections, so that reconnect
// can tell later that the peer has stopped.
func (l *link) probeAddresses(h host.Host) {
	if l.err == nil && l.peer != h.ID() {
		l.running.Go(func() { l.endpoints.Probe(l.ctx, h, l.peer) }) // ends within 3 s
	}
}

// Partners returns the peers of all jobs that are staged or have begun, and how long each may be
// silent.
func (s *Submitter) Partners() map[p2ppeer.ID]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[p2ppeer.ID]time.Duration)
	for _, peers := range maps.All(s.partners) {
		for _, p := range peers {
			out[p] = s.cfg.Hang
		}
	}
	delete(out, s.cfg.Host.ID())
	return out
}

func (s *Submitter) setPartners(job string, peers []p2ppeer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partners[job] = peers
}
