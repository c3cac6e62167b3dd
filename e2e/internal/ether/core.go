package ether

import (
	"math/rand/v2"
	"time"
)

// A Way is what happens to frames from one port to another. The zero Way delivers
// all of them at once, in order.
type Way struct {
	Cut   bool          // none arrives, and nobody is told
	Loss  float64       // part of the frames that is lost, 0 to 1
	Delay time.Duration // of every frame
	Late  float64       // part of the frames that is late besides
	By    time.Duration // how late: whatever is sent meanwhile overtakes it
}

// An address is the hardware address of an interface.
type address [6]byte

// A delivery is a frame on its way to a port.
type delivery struct {
	to    int
	after time.Duration
}

// A core knows who is where, and what happens on the way there.
type core struct {
	random *rand.Rand
	ports  int
	ways   map[[2]int]Way // by from and to; one that is not in it is the zero Way
	where  map[address]int
}

// maxAddresses bounds what a core learns; beyond it frames go to everybody.
const maxAddresses = 1 << 12

func newCore(seed uint64) *core {
	return &core{random: rand.New(rand.NewPCG(seed, 0)), ways: make(map[[2]int]Way), where: make(map[address]int)}
}

// forward returns where a frame that came in at a port goes to. A frame for nobody
// in particular, or for somebody unknown, goes to all others.
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

// deliver appends what becomes of a frame from one port to another, if anything.
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

// set replaces a way.
func (c *core) set(from, to int, way Way) {
	if way == (Way{}) {
		delete(c.ways, [2]int{from, to})
		return
	}
	c.ways[[2]int{from, to}] = way
}
