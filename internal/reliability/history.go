package reliability

import (
	"math"
	"time"
)

// A History is a peer's record of its own availability since it was set up.
type History struct {
	Up   time.Duration `json:"up"`   // total running time in nanoseconds
	Ends int           `json:"ends"` // ends without waiting for jobs: crashed, killed or halted without draining
}

// The prior for a peer without history is one end per day. Most peers are better, and their history soon outweighs
// the prior: after a month without an end, a peer is expected to have one end in 31 days.
const (
	priorUp   = 24 * time.Hour
	priorEnds = 1
)

// MaxUp and MaxEnds bound a peer's statement about itself. Whatever the peer claims, it is expected to end at
// least once in 100 days, and at most once in 86 s.
const (
	MaxUp   = 99 * 24 * time.Hour
	MaxEnds = 1000
)

// Recent returns h with an Up of at most MaxUp. It scales down Up and Ends of a longer history in proportion, so
// that early ends lose weight.
func (h History) Recent() History {
	if h.Up <= MaxUp {
		return h
	}
	return History{Up: MaxUp, Ends: int(float64(h.Ends) * float64(MaxUp) / float64(h.Up))}
}

// Fails returns the probability that the peer ends within the given time. It assumes that ends are independent of
// each other and of the running time so far.
func (h History) Fails(within time.Duration) float64 {
	up := min(max(h.Up, 0), MaxUp) + priorUp
	ends := min(max(h.Ends, 0), MaxEnds) + priorEnds
	return -math.Expm1(-float64(ends) * float64(max(within, 0)) / float64(up))
}
