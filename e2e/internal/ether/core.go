package ether

import (
	"math/rand/v2"
	"time"
)

// A Way describes the transmission of frames from one port to another. The zero Way delivers all
// frames at once, in order.
type Way struct {
	Cut   bool          // all frames are silently dropped
	Loss  float64       // share of the frames that is lost, 0 to 1
	Delay time.Duration // delay of every frame
	Late  float64       // share of the frames that has an additional delay
	By    time.Duration // that delay; frames sent later overtake the delayed ones
}

// An address is the hardware address of an interface.
type address [6]byte

// A delivery is a frame in transit to a port.
type delivery struct {
	to    int
	after time.Duration
}

// A core knows the port of each address, and the Way between ports.
type core struct {
	random *rand.Rand
	ports  int
	ways   map[[2]int]Way // by from and to; the zero Way if absent
	where  map[address]int
}

// maxAddresses bounds the learned addresses; frames to other addresses are sent to all ports.
const maxAddresses = 1 << 12

func newCore(seed uint64) *core {
	return &core{random: rand.New(rand.NewPCG(seed, 0)), ways: make(map[[2]int]Way), where: make(map[address]int)}
}

// forward returns the deliveries of a frame that arrived at a port. A broadcast or a frame for an
// unknown address goes to all other ports.
func (c *core) forward(from int, frame []byte) []delivery {
	if len(frame) < 14 { // destination, source, type
		return nil
	}
	destination, source := address(frame[:6]), address(frame[6:12])
	if len(c.where) < maxAddresses {
		c.where[source] = from
	}
	if to, ok := c.where[destination]; ok {
		return c.deliver(nil, from, to)
	}
	var all []delivery
	for to := range c.ports {
		all = c.deliver(all, from, to)
	}
	return all
}

// deliver appends the delivery of a frame from one port to another, if it is not lost.
func (c *core) deliver(all []delivery, from, to int) []delivery {
	way := c.ways[[2]int{from, to}]
	if from == to || way.Cut || way.Loss > 0 && c.random.Float64() < way.Loss {
		return all
	}
	after := way.Delay
	if way.Late > 0 && c.random.Float64() < way.Late {
		after += way.By
	}
	return append(all, delivery{to, after})
}

// set replaces the Way between two ports.
func (c *core) set(from, to int, way Way) {
	if way == (Way{}) {
		delete(c.ways, [2]int{from, to})
		return
	}
	c.ways[[2]int{from, to}] = way
}
