package viewgroup

import "slices"

// A Contact describes a peer's contact with the majority of the voters.
type Contact int

// The states of contact.
const (
	InTouch Contact = iota
	Absent          // for a second: other peers may still hear a peer that is silent here
	CutOff          // for so long that this peer has to stop (V2)
)

// contacts records when this peer has heard others, in ticks.
type contacts struct {
	now      int
	touched  int            // last time in touch with the majority
	ledAt    int            // last time that this peer heard a leader, or that a term began
	heard    map[uint64]int // last message of each other peer
	answered map[uint64]int // last answer of each other peer while this peer leads, else nil
}

// contact returns the contact of this peer with the majority.
func (c *contacts) contact() Contact {
	switch silence := c.now - c.touched; {
	case silence > cutOffTicks:
		return CutOff
	case silence > absentTicks:
		return Absent
	}
	return InTouch
}

// silent reports whether a peer has not answered this one for the given number of ticks.
func (c *contacts) silent(id uint64, ticks int) bool {
	last, known := c.answered[id]
	return known && c.now-last > ticks
}

// heardRecently reports whether a peer was heard recently. A lost peer must not become one of two voters, since
// the other one alone could not commit anything.
func (c *contacts) heardRecently(id uint64) bool { return c.now-c.heard[id] <= 2*heartbeatTicks }

// majorityHeard returns the latest time since which a majority of the voters was heard. The peer with number
// self is this one, which counts as heard now.
func (c *contacts) majorityHeard(voters []uint64, self uint64) int {
	var heard []int
	for _, id := range voters {
		if id == self {
			heard = append(heard, c.now)
		} else {
			heard = append(heard, c.heard[id])
		}
	}
	slices.Sort(heard)
	return heard[(len(heard)-1)/2]
}
