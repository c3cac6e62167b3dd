package ether

import (
	"math/rand/v2"
	"time"
)

// A Link describes the transmission of frames from one port to another. The zero Link delivers all frames at
// once, in order.
type Link struct {
	Cut   bool          // all frames are silently dropped
	Loss  float64       // share of the frames that is lost, 0 to 1
	Delay time.Duration // delay of every frame
	Late  float64       // share of the frames that has an additional delay
	By    time.Duration // additional delay; frames sent later overtake the delayed ones
}

// An address is the hardware address of an interface.
type address [6]byte

// A delivery is a frame in transit to a port.
type delivery struct {
	to    int
	after time.Duration
}

// A core knows the port of each address, and the links between ports.
type core struct {
	random *rand.Rand
	ports  int
	links  map[[2]int]Link // by from and to; the zero Link if absent
	where  map[address]int
}

// maxAddresses bounds the learned addresses; frames to other addresses are sent to all ports.
const maxAddresses = 1 << 12

func newCore(seed uint64) *core {
	return &core{random: rand.New(rand.NewPCG(seed, 0)), links: make(map[[2]int]Link), where: make(map[address]int)}
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
	link := c.links[[2]int{from, to}]
	if from == to || link.Cut || link.Loss > 0 && c.random.Float64() < link.Loss {
		return all
	}
	after := link.Delay
	if link.Late > 0 && c.random.Float64() < link.Late {
		after += link.By
	}
	return append(all, delivery{to, after})
}

// set replaces the Link from one port to another.
func (c *core) set(from, to int, link Link) {
	if link == (Link{}) {
		delete(c.links, [2]int{from, to})
		return
	}
	c.links[[2]int{from, to}] = link
}
