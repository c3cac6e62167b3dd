package submit

import (
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A routing tells the user how the processes reach each other: all routes once every peer has
// reported its own, and later only the changes.
type routing struct {
	j     *run
	peers *membership
	told  bool // the user knows the routes
}

// add handles a peer's report of its routes to the other peers. The error means that it is invalid.
func (r *routing) add(l *link, m *jobpb.Paths) error {
	if !r.j.req.Explain || len(m.Paths) > len(r.peers.links) {
		return fmt.Errorf("unexpected %T", m)
	}
	byPeer := make(map[p2ppeer.ID]*link)
	for _, l := range r.peers.links {
		byPeer[l.peer] = l
	}
	routes := []Route{}
	for _, p := range m.Paths {
		to := byPeer[p2ppeer.ID(p.Peer)]
		if to == nil || len(p.Kind) > maxKind || len(p.Way) > maxKind {
			return fmt.Errorf("way to %q by %.20q", p.Peer, p.Kind)
		}
		routes = append(routes, Route{From: l.processes, To: to.processes, Kind: p.Kind, Relay: relayOf(p), Why: plain(p.Why),
			Way: p.Way, RTT: time.Duration(p.RoundTripUs) * time.Microsecond})
	}
	if l.reported.routes != nil {
		r.j.emit(Event{Kind: ChannelsEvent, Routes: routes})
		return nil
	}
	l.reported.routes = routes
	r.tell()
	return nil
}

// tell tells the user the routes, once all remaining peers have reported.
func (r *routing) tell() {
	if r.told || !r.j.req.Explain {
		return
	}
	var routes []Route
	for _, l := range r.peers.links {
		if l.err == nil && l.reported.routes == nil {
			return
		}
		for i := range l.processes {
			self := l.processes[i : i+1]
			routes = append(routes, Route{From: self, To: self, Kind: "self", Why: "a process to itself"})
		}
		routes = append(routes, l.reported.routes...)
	}
	r.told = true
	r.j.emit(Event{Kind: ChannelsEvent, Routes: routes})
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
