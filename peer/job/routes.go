package job

import (
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// heardPaths takes what a peer says of its ways to the others. Once all have
// said it the user is told; after that, what has changed.
func (e *execution) heardPaths(l *link, m *jobpb.Paths) *Result {
	if !e.j.req.Explain || len(m.Paths) > len(e.links) {
		return e.breach(l, fmt.Errorf("unexpected %T", m))
	}
	first := l.routes == nil
	byPeer := make(map[p2ppeer.ID]*link)
	for _, l := range e.links {
		byPeer[l.peer] = l
	}
	var routes []Route
	for _, p := range m.Paths {
		to := byPeer[p2ppeer.ID(p.Peer)]
		if to == nil || len(p.Kind) > maxKind || len(p.Way) > maxKind {
			return e.breach(l, fmt.Errorf("way to %q by %.20q", p.Peer, p.Kind))
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

// relayOf returns the ID of the peer that a way goes through, or nothing.
func relayOf(p *jobpb.Path) string {
	if id, err := p2ppeer.IDFromBytes(p.Relay); err == nil {
		return id.String()
	}
	return ""
}

// maxKind bounds the name of a kind of channel, or of a way, in bytes.
const maxKind = 20

// explain tells the user how processes reach each other, once all peers that are
// left have said so.
func (e *execution) explain() {
	if e.explained {
		return
	}
	var routes []Route
	for _, l := range e.links {
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
