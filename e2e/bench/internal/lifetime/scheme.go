package lifetime

import "math/bits"

// A Scheme is a rule for the targets of a member's tables, round by round.
type Scheme int

// The schemes. In round k of ⌈log₂ n⌉, member s of n sends to
const (
	BRR      Scheme = iota // s + 2^(k-1): binary round robin
	DBRR                   // s + 2^(k-1), in ⌈log₂ n⌉ further rounds s - 2^(k-1): double binary round robin
	LiveDBRR               // as DBRR, with distances counted in live members
)

// String returns the name of the scheme as used in docs.
func (s Scheme) String() string {
	return [...]string{"BRR", "DBRR", "ours"}[s]
}

// Among returns the gossip of a group of n members, 2 to MaxMembers, without crashes.
func (s Scheme) Among(n int) Gossip {
	g := Gossip{n: n, live: s == LiveDBRR}
	half := bits.Len(uint(n - 1)) // ⌈log₂ n⌉
	for k := range half {
		g.distances = append(g.distances, 1<<k)
	}
	if s == BRR {
		return g
	}
	for k := range half {
		g.distances = append(g.distances, -1<<k)
	}
	return g
}

// Gossip defines the sender and receiver of each table in a group.
type Gossip struct {
	n         int
	distances []int // per round: member i sends to i + distance, mod n
	live      bool  // distances are counted in live members
}

// after returns the gossip among the survivors of crashes, and the survivors. If distances are counted in
// live members, the survivors are renumbered as a smaller ring without gaps.
func (g Gossip) after(crashed Set) (Gossip, Set) {
	survivors := allOf(g.n).minus(crashed)
	if !g.live {
		return g, survivors
	}
	m := survivors.Len()
	ring := Gossip{n: m, distances: make([]int, len(g.distances))}
	for k, d := range g.distances {
		ring.distances[k] = 1 // a multiple of m would be the member itself
		if m > 1 && modulo(d, m) != 0 {
			ring.distances[k] = modulo(d, m)
		}
	}
	return ring, allOf(m)
}

// Cut reports whether these crashes end the detector: fewer than two members survive, or some survivor never
// again hears of another one.
func (g Gossip) Cut(crashed Set) bool {
	ring, survivors := g.after(crashed)
	if survivors.Len() < 2 {
		return true
	}
	return ring.reached(survivors, false) != survivors || ring.reached(survivors, true) != survivors
}

// reached returns the members that eventually receive news of the first survivor. If backwards is true,
// it returns the members whose news the first survivor receives.
func (g Gossip) reached(survivors Set, backwards bool) Set {
	known := setOf(survivors.first())
	for fresh := known; fresh != (Set{}); {
		var next Set
		for _, d := range g.distances {
			if backwards {
				d = -d
			}
			next = next.union(fresh.rotate(modulo(d, g.n), g.n))
		}
		fresh = next.intersect(survivors).minus(known)
		known = known.union(fresh)
	}
	return known
}

// Late reports whether, starting in some round, these crashes leave some survivor without news of another
// until the targets repeat. The literature considers a member failed after that time.
func (g Gossip) Late(crashed Set) bool {
	ring, survivors := g.after(crashed)
	members := ring.n
	if g.live {
		members = min(1, members) // all positions are alike on a ring without gaps
	}
	for start := range ring.distances {
		for i := range members {
			if survivors.Has(i) && ring.spread(i, start, survivors) != survivors {
				return true
			}
		}
	}
	return false
}

// spread returns the members that know member i's heartbeat of round start after each round has occurred
// once.
func (g Gossip) spread(i, start int, survivors Set) Set {
	known := setOf(i)
	for k := range g.distances {
		d := g.distances[(start+k)%len(g.distances)]
		known = known.union(known.rotate(modulo(d, g.n), g.n).intersect(survivors))
	}
	return known
}

func modulo(a, n int) int { return (a%n + n) % n }
