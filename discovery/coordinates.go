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
	maxCoordinates    = 4096 // peers of which is known where they stand
	enoughCoordinates = 1024 // who knows so many asks for no more
	maxHearsay        = 16   // that one peer tells
	maxSpan           = 10   // seconds: no coordinate is longer
	maxSpanError      = 1.5
)

// Coordinates know where this peer and others stand in the space of round-trip times, in
// which each finds its place by those that it measures (Vivaldi). So the way to a peer can be
// told before it is asked, if it or another has said where it stands.
//
// A lie about where a peer stands decides who is asked first, and what is chosen by is
// measured; one that would have this peer stand where none can is taken back.
type coordinates struct {
	client *coordinate.Client

	mu    sync.Mutex
	known map[p2ppeer.ID]position
}

// A position is where a peer stands.
type position struct {
	*coordinate.Coordinate
	own bool // it told so itself, to this peer: it can be passed on
}

func newCoordinates() *coordinates {
	client, err := coordinate.NewClient(coordinate.DefaultConfig())
	if err != nil {
		panic(err) // never with the library's own settings
	}
	return &coordinates{client: client, known: make(map[p2ppeer.ID]position)}
}

// here is where this peer stands.
func (c *coordinates) here() *coordinate.Coordinate { return c.client.GetCoordinate() }

// measured notes where a peer says that it stands, and how far it is.
func (c *coordinates) measured(id p2ppeer.ID, at *coordinate.Coordinate, rtt time.Duration) {
	if at == nil {
		return
	}
	if !c.move(id, at, rtt) {
		return
	}
	c.note(id, position{at, true})
}

// move has this peer find its place by another, and reports whether that makes sense: one
// that is placed with care, next to this one, could throw it out of the world for ever.
func (c *coordinates) move(id p2ppeer.ID, at *coordinate.Coordinate, rtt time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.client.GetCoordinate()
	after, err := c.client.Update(id.String(), at, rtt)
	c.client.ForgetNode(id.String()) // its filter: rtt is the best of several already
	if err != nil {
		return false // farther than anything is
	}
	if checkCoordinate(after) == nil {
		return true
	}
	_ = c.client.SetCoordinate(before) // valid, as it was found to be
	return false
}

// heard notes where a peer stands by the word of another.
func (c *coordinates) heard(id p2ppeer.ID, at *coordinate.Coordinate) {
	c.note(id, position{at, false})
}

func (c *coordinates) note(id p2ppeer.ID, at position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.known[id]
	if old.own && !at.own {
		return
	}
	if !known && len(c.known) >= maxCoordinates {
		for other := range c.known { // any
			delete(c.known, other)
			break
		}
	}
	c.known[id] = at
}

// estimate returns how far a peer is, if that can be told.
func (c *coordinates) estimate(id p2ppeer.ID) (time.Duration, bool) {
	c.mu.Lock()
	at, known := c.known[id]
	c.mu.Unlock()
	if !known {
		return 0, false
	}
	return c.client.DistanceTo(at.Coordinate), true
}

// wanting reports whether too little is known.
func (c *coordinates) wanting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known) < enoughCoordinates
}

// hearsay returns where some peers stand that have told so themselves.
func (c *coordinates) hearsay() (out []*pb.Hearsay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.known { // in any order
		if len(out) == maxHearsay {
			break
		}
		if at.own {
			out = append(out, &pb.Hearsay{Peer: []byte(id), Position: toPB(at.Coordinate)})
		}
	}
	return out
}

// believe notes hearsay, as far as it makes sense.
func (c *coordinates) believe(all []*pb.Hearsay) {
	for _, h := range all[:min(len(all), maxHearsay)] {
		id, err := p2ppeer.IDFromBytes(h.GetPeer())
		at := fromPB(h.GetPosition())
		if err == nil && at != nil && checkCoordinate(at) == nil {
			c.heard(id, at)
		}
	}
}

// toPB encodes a coordinate; nil stays nil.
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

// fromPB decodes a coordinate, of which checkCoordinate has to judge; nil stays nil.
func fromPB(m *pb.Coordinate) *coordinate.Coordinate {
	if m == nil {
		return nil
	}
	c := &coordinate.Coordinate{Error: float64(m.GetError()), Adjustment: float64(m.GetAdjustment()), Height: float64(m.GetHeight())}
	for _, x := range m.GetVec()[:min(len(m.GetVec()), 2*dimensions)] { // more are too many anyway
		c.Vec = append(c.Vec, float64(x))
	}
	return c
}

var dimensions = int(coordinate.DefaultConfig().Dimensionality)

// checkCoordinate refuses what no peer on earth can say.
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
