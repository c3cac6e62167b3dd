package discovery

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/serf/coordinate"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
)

const (
	maxCoordinates    = 4096 // peers with a known position
	enoughCoordinates = 1024 // number of known positions at which no more are requested
	maxHearsay        = 16   // positions in one answer
	maxSpan           = 10   // seconds; bound on each component
	maxSpanError      = 1.5
)

// coordinates holds the positions of this peer and others in a space of round-trip times. Each peer
// computes its position from the round trips that it measures (Vivaldi). So the distance to a peer can be
// estimated before that peer is asked, if its position was learned from the peer or from another one.
//
// A false position affects only the order in which peers are asked; candidates are chosen by measured
// times. An update that would move this peer out of the plausible range is undone.
type coordinates struct {
	client *coordinate.Client

	mu    sync.Mutex
	known map[p2ppeer.ID]position
}

// A position is the coordinate of one peer.
type position struct {
	*coordinate.Coordinate
	own bool // learned from the peer itself, so it may be passed on
}

func newCoordinates() *coordinates {
	client, err := coordinate.NewClient(coordinate.DefaultConfig())
	if err != nil {
		panic(err) // impossible with the library's own settings
	}
	return &coordinates{client: client, known: make(map[p2ppeer.ID]position)}
}

func (c *coordinates) here() *coordinate.Coordinate { return c.client.GetCoordinate() }

// measured records the position that a peer claims, and updates this peer's own position with the measured
// round trip.
func (c *coordinates) measured(id p2ppeer.ID, at *coordinate.Coordinate, rtt time.Duration) {
	if at != nil && c.move(id, at, rtt) {
		c.note(id, position{at, true})
	}
}

// move updates this peer's coordinate with a measurement and reports whether the result is plausible. It
// undoes an implausible update; otherwise a position crafted close to this peer's could displace it
// permanently.
func (c *coordinates) move(id p2ppeer.ID, at *coordinate.Coordinate, rtt time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.client.GetCoordinate()
	after, err := c.client.Update(id.String(), at, rtt)
	c.client.ForgetNode(id.String()) // drops its latency filter: rtt is already the best of several
	if err != nil {
		return false // rejected, for instance because rtt is out of range
	}
	if checkCoordinate(after) == nil {
		return true
	}
	_ = c.client.SetCoordinate(before) // valid before the update
	return false
}

func (c *coordinates) note(id p2ppeer.ID, at position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.known[id]
	if old.own && !at.own {
		return
	}
	if !known && len(c.known) >= maxCoordinates {
		for other := range c.known { // an arbitrary one
			delete(c.known, other)
			break
		}
	}
	c.known[id] = at
}

// estimate returns the estimated round-trip time to a peer, if its position is known.
func (c *coordinates) estimate(id p2ppeer.ID) (time.Duration, bool) {
	c.mu.Lock()
	at, known := c.known[id]
	c.mu.Unlock()
	if !known {
		return 0, false
	}
	return c.client.DistanceTo(at.Coordinate), true
}

// needsMore reports whether this peer should request more positions.
func (c *coordinates) needsMore() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known) < enoughCoordinates
}

// hearsay returns the positions of up to maxHearsay peers, each learned from that peer itself.
func (c *coordinates) hearsay() (out []*pb.Hearsay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.known { // in random order
		if len(out) == maxHearsay {
			break
		}
		if at.own {
			out = append(out, &pb.Hearsay{Peer: []byte(id), Position: toPB(at.Coordinate)})
		}
	}
	return out
}

// applyHearsay records the plausible positions of a peer's hearsay.
func (c *coordinates) applyHearsay(all []*pb.Hearsay) {
	for _, h := range all[:min(len(all), maxHearsay)] {
		id, err := p2ppeer.IDFromBytes(h.GetPeer())
		at := fromPB(h.GetPosition())
		if err == nil && at != nil && checkCoordinate(at) == nil {
			c.note(id, position{at, false})
		}
	}
}

// toPB encodes a coordinate; nil encodes to nil.
func toPB(c *coordinate.Coordinate) *pb.Coordinate {
	if c == nil {
		return nil
	}
	m := &pb.Coordinate{Error: float32(c.Error), Adjustment: float32(c.Adjustment), Height: float32(c.Height)}
	for _, x := range c.Vec {
		m.Vec = append(m.Vec, float32(x))
	}
	return m
}

// fromPB decodes a coordinate without validating it (see checkCoordinate); nil decodes to nil.
func fromPB(m *pb.Coordinate) *coordinate.Coordinate {
	if m == nil {
		return nil
	}
	c := &coordinate.Coordinate{Error: float64(m.GetError()), Adjustment: float64(m.GetAdjustment()), Height: float64(m.GetHeight())}
	for _, x := range m.GetVec()[:min(len(m.GetVec()), 2*dimensions)] { // checkCoordinate rejects longer ones
		c.Vec = append(c.Vec, float64(x))
	}
	return c
}

var dimensions = int(coordinate.DefaultConfig().Dimensionality)

// checkCoordinate rejects coordinates that are impossible on earth.
func checkCoordinate(c *coordinate.Coordinate) error {
	if len(c.Vec) != dimensions || !c.IsValid() {
		return fmt.Errorf("coordinate of %d dimensions, want %d finite ones", len(c.Vec), dimensions)
	}
	for _, x := range append([]float64{c.Adjustment}, c.Vec...) {
		if math.Abs(x) > maxSpan {
			return fmt.Errorf("coordinate of %v seconds", x)
		}
	}
	if c.Height < 0 || c.Height > maxSpan || c.Error < 0 || c.Error > maxSpanError {
		return fmt.Errorf("coordinate of height %v and error %v", c.Height, c.Error)
	}
	return nil
}
