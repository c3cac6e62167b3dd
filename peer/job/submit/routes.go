package submit

import (
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// handlePaths handles a peer's report of its routes to the other peers. The user gets all routes
// once every peer has reported, and later only the changes.
func (e *execution) handlePaths(l *link, m *jobpb.Paths) *job.Result {
	if !e.j.req.Explain || len(m.Paths) > len(e.peers.links) {
		return e.protocolError(l, fmt.Errorf("unexpected %T", m))
	}
	first := l.routes == nil
	byPeer := make(map[p2ppeer.ID]*link)
	for _, l := range e.peers.links {
		byPeer[l.peer] = l
	}
	var routes []Route
	for _, p := range m.Paths {
		to := byPeer[p2ppeer.ID(p.Peer)]
		if to == nil || len(p.Kind) > maxKind || len(p.Way) > maxKind {
			return e.protocolError(l, fmt.Errorf("way to %q by %.20q", p.Peer, p.Kind))
		}
		routes = append(routes, Route{From: l.processes, To: to.processes, Kind: p.Kind, Relay: relayOf(p), Why: plain(p.Why),
			Way: p.Way, RTT: time.Duration(p.RoundTripUs) * time.Microsecond})
	}
	if !first {
		e.j.emit(Event{Kind: ChannelsEvent, Routes: routes})
		return nil
	}
	l.routes = append([]Route{}, routes...)
	e.explain()
	return nil
}

// relayOf returns the ID of the relay on a route, or "".
func relayOf(p *jobpb.Path) string {
	if id, err := p2ppeer.IDFromBytes(p.Relay); err == nil {
		return id.String()
	}
	return ""
}

// maxKind limits the length of the name of a channel kind or of a way, in bytes.
const maxKind = 20

// explain tells the user how processes reach each other, once all remaining peers have reported.
func (e *execution) explain() {
	if e.explained {
		return
	}
	var routes []Route
	for _, l := range e.peers.links {
		if l.err == nil && l.routes == nil {
			return
		}
		for i := range l.processes {
			self := l.processes[i : i+1]
			routes = append(routes, Route{From: self, To: self, Kind: "self", Why: "a process to itself"})
		}
		routes = append(routes, l.routes...)
	}
	e.explained = true
	e.j.emit(Event{Kind: ChannelsEvent, Routes: routes})
}
