package status

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// A Connection describes the best connection to another peer.
type Connection struct {
	Peer      string        `json:"peer"`            // ID
	Way       string        `json:"way"`             // direct, punched or relayed
	Relay     string        `json:"relay,omitempty"` // ID of the relay, if any
	Transport string        `json:"transport"`       // tcp or quic; for a circuit, the transport to the relay
	Address   string        `json:"address"`
	RTT       time.Duration `json:"rtt,omitempty"` // round trip in nanoseconds, or 0 if the peer did not answer
	Why       string        `json:"why,omitempty"` // why no better connection is used
}

// A Channel describes the channel from a process here to a process of another peer.
type Channel struct {
	From  view.Process `json:"from"`
	To    view.Process `json:"to"`
	Peer  string       `json:"peer"`            // ID of the other peer
	Kind  string       `json:"kind"`            // tcp or stream
	Way   string       `json:"way"`             // direct, punched or relayed
	Relay string       `json:"relay,omitempty"` // ID of the relay, if any
	// RTT is the round trip between the two peers in nanoseconds, or 0 if the other peer did not answer.
	RTT time.Duration `json:"rtt,omitempty"`
	Why string        `json:"why"` // reason for this kind of channel
}

const (
	// measureTimeout bounds the measurement of all round trips together. maxMeasuring is the number of
	// peers measured at the same time.
	measureTimeout = time.Second
	maxMeasuring   = 32
)

// Connections returns the best connection of h to each peer, sorted by ID. It measures the round trips.
func Connections(ctx context.Context, h host.Host, punches *connection.Punches) []Connection {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	out := []Connection{} // a list in JSON even when empty
	var mu sync.Mutex
	var measuring sync.WaitGroup
	free := make(chan struct{}, maxMeasuring)
	for _, id := range h.Network().Peers() {
		free <- struct{}{}
		measuring.Go(func() {
			defer func() { <-free }()
			if c, ok := connectionTo(ctx, h, id, punches); ok {
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

// connectionTo returns false if the peer is no longer connected.
func connectionTo(ctx context.Context, h host.Host, id p2ppeer.ID, punches *connection.Punches) (Connection, bool) {
	c, ok := connection.Best(h, id, punches)
	if !ok {
		return Connection{}, false
	}
	rtt, _ := connection.RoundTrip(ctx, h, id)
	return Connection{
		Peer: id.String(), Way: string(c.Way), Relay: name(c.Relay),
		Transport: c.Transport, Address: c.Address.String(), RTT: rtt, Why: c.Why,
	}, true
}

// channelsOf converts channels, and takes their round trips from connections.
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

// name returns the ID of a peer as text, or "" if there is none.
func name(id p2ppeer.ID) string {
	if id == "" {
		return ""
	}
	return id.String()
}
