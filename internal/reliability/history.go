package reliability

import (
	"math"
	"time"
)

// A History is what a peer has seen of itself since it was set up.
type History struct {
	Up   time.Duration `json:"up"`   // nanoseconds that it has run, in all
	Ends int           `json:"ends"` // how often it ended without waiting for jobs: crashed, killed or halted without draining
}

// A peer of which nothing is known is taken for one that ends once a day. That
// is worse than most, and soon outweighed: after a month without an end a
// peer is expected to have one in 31 days.
const (
	priorUp   = 24 * time.Hour
	priorEnds = 1
)

// MaxUp and MaxEnds bound what a peer is believed about itself: whatever it says, it
// is expected to end once in 100 days at least, and every 86 s at most.
const (
	MaxUp   = 99 * 24 * time.Hour
	MaxEnds = 1000
)

// Recent is a history of at most MaxUp: of more, the ends count in proportion, so
// that a peer is not held to its youth.
func (h History) Recent() History {
	if h.Up <= MaxUp {
		return h
	}
	return History{Up: MaxUp, Ends: int(float64(h.Ends) * float64(MaxUp) / float64(h.Up))}
}

// Fails returns the probability that the peer ends within a time, ends being
// independent of each other and of how long it has run already.
func (h History) Fails(within time.Duration) float64 {
	up := min(max(h.Up, 0), MaxUp) + priorUp
	ends := min(max(h.Ends, 0), MaxEnds) + priorEnds
	return -math.Expm1(-float64(ends) * float64(max(within, 0)) / float64(up))
}
