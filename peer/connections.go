package peer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// A Connection is how this peer is connected with another.
type Connection struct {
	Peer      string        `json:"peer"`            // ID
	Way       string        `json:"way"`             // direct, punched or relayed
	Relay     string        `json:"relay,omitempty"` // ID of the peer that it goes through, if any
	Transport string        `json:"transport"`       // tcp or quic; that to the relay, if there is one
	Address   string        `json:"address"`
	RTT       time.Duration `json:"rtt,omitempty"` // round trip in nanoseconds; 0: it did not answer
	Why       string        `json:"why,omitempty"` // it is no better
}

// A Channel is how messages go from a process here to one of another peer.
type Channel struct {
	From  view.Process `json:"from"`
	To    view.Process `json:"to"`
	Peer  string       `json:"peer"`            // ID, of the other peer
	Kind  string       `json:"kind"`            // tcp or stream
	Way   string       `json:"way"`             // direct, punched or relayed
	Relay string       `json:"relay,omitempty"` // ID of the peer that it goes through, if any
	// RTT is the round trip between the two peers in nanoseconds; 0: the other did not answer.
	RTT time.Duration `json:"rtt,omitempty"`
	Why string        `json:"why"` // it is this, and nothing better
}

// Connected reports whether any other peer is connected.
func (p *Peer) Connected() bool { return len(p.host.Network().Peers()) > 0 }

const (
	// measureTimeout is how long all of them together may take to answer, and maxMeasuring
	// how many are asked at one time.
	measureTimeout = time.Second
	maxMeasuring   = 32
)

// connections returns the best connection with each peer, in order of ID.
func (p *Peer) connections(ctx context.Context) []Connection {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	out := []Connection{} // a list in JSON even when it is empty
	var mu sync.Mutex
	var measuring sync.WaitGroup
	free := make(chan struct{}, maxMeasuring)
	for _, id := range p.host.Network().Peers() {
		free <- struct{}{}
		measuring.Go(func() {
			defer func() { <-free }()
			if c, ok := p.connection(ctx, id); ok {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, c)
			}
		})
	}
	measuring.Wait()
	slices.SortFunc(out, func(a, b Connection) int { return cmp.Compare(a.Peer, b.Peer) })
	return out
}

// connection is false when the peer is not connected any more.
func (p *Peer) connection(ctx context.Context, id p2ppeer.ID) (Connection, bool) {
	c, ok := connection.Best(p.host, id, p.punches)
	if !ok {
		return Connection{}, false
	}
	rtt, _ := connection.RoundTrip(ctx, p.host, id)
	return Connection{
		Peer: id.String(), Way: string(c.Way), Relay: name(c.Relay),
		Transport: c.Transport, Address: c.Address.String(), RTT: rtt, Why: c.Why,
	}, true
}

// channelsOf tells of channels, with the round trips of connections.
func channelsOf(channels []launch.Channel, connections []Connection) (out []Channel) {
	away := make(map[string]time.Duration, len(connections))
	for _, c := range connections {
		away[c.Peer] = c.RTT
	}
	for _, c := range channels {
		id := c.Peer.String()
		out = append(out, Channel{
			From: c.From, To: c.To, Peer: id,
			Kind: string(c.Kind), Way: string(c.Way), Relay: name(c.Relay), RTT: away[id], Why: c.Why,
		})
	}
	return out
}

// name writes the ID of a peer, or nothing if there is none.
func name(id p2ppeer.ID) string {
	if id == "" {
		return ""
	}
	return id.String()
}
