package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// A place is the position of a peer as in Vivaldi: a point in a plane, plus a height that its access link
// adds. Distances are round-trip times in milliseconds.
type place struct{ x, y, height float64 }

// regions are the regions of the world with their shares of the population. The positions are assumed: Europe,
// North America east and west, East Asia, South America, Oceania.
var regions = []struct {
	share, x, y float64
}{{0.38, 0, 0}, {0.22, 90, 0}, {0.14, 150, 20}, {0.16, 200, 150}, {0.06, 110, 150}, {0.04, 260, 120}}

// Positions and access links of the peers within a region.
const (
	spread = 12 // ms, standard deviation of positions within a region
	access = 12 // ms, mean delay of an access link beyond 1 ms
)

func somewhere(rnd *rand.Rand) place {
	which := rnd.Float64()
	for _, r := range regions {
		if which -= r.share; which < 0 {
			return place{r.x + spread*rnd.NormFloat64(), r.y + spread*rnd.NormFloat64(), 1 + access*rnd.ExpFloat64()}
		}
	}
	return place{height: 1}
}

// rtt returns the round-trip time between two places on an idle network.
func (p place) rtt(q place) time.Duration {
	ms := math.Hypot(p.x-q.x, p.y-q.y) + p.height + q.height
	return time.Duration(ms * float64(time.Millisecond))
}
