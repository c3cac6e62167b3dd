package lifetime

import "math/bits"

// A Scheme is a rule for whom a member sends its table to, round by round.
type Scheme int

// The schemes. In round k of ⌈log₂ n⌉ member s of n sends to
const (
	BRR      Scheme = iota // s + 2^(k-1): binary round robin
	DBRR                   // s + 2^(k-1), in ⌈log₂ n⌉ further rounds s - 2^(k-1): double binary round robin
	LiveDBRR               // as DBRR, but distances are counted in live members
)

// String names the scheme as in docs.
func (s Scheme) String() string {
	return [...]string{"BRR", "DBRR", "ours"}[s]
}

// Among returns the gossip of a group of n members, 2 to MaxMembers, in which
// nobody has crashed yet.
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

// Gossip says who sends to whom in a group.
type Gossip struct {
	n         int
	distances []int // of each round: member i sends to i + it, mod n
	live      bool  // distances are counted in live members
}

// Rounds returns after how many rounds the targets repeat.
func (g Gossip) Rounds() int { return len(g.distances) }

// after is the gossip that survivors of crashes go on with, and who they are.
// Counted in live members they are a smaller ring without gaps.
func (g Gossip) after(crashed Set) (Gossip, Set) {
	survivors := everybody(g.n).minus(crashed)
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
	return ring, everybody(m)
}

// Cut tells whether these crashes end the detector: fewer than two members
// survive, or some survivor will never again hear of some other.
func (g Gossip) Cut(crashed Set) bool {
	ring, survivors := g.after(crashed)
	if survivors.Len() < 2 {
		return true
	}
	return ring.reached(survivors, false) != survivors || ring.reached(survivors, true) != survivors
}

// reached is whom news of the first survivor come to sooner or later, or, backwards,
// whose news come to it.
func (g Gossip) reached(survivors Set, backwards bool) Set {
	known := SetOf(survivors.first())
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

// Late tells whether these crashes leave some survivor, beginning in some round,
// without news of another for as many rounds as it takes until the targets
// repeat. That is the time after which the literature calls a member failed.
func (g Gossip) Late(crashed Set) bool {
	ring, survivors := g.after(crashed)
	members := ring.n
	if g.live {
		members = min(1, members) // all alike: nobody is missing on their ring
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

// spread is who knows member i's heartbeat of a round when all rounds have
// passed once since.
func (g Gossip) spread(i, start int, survivors Set) Set {
	known := SetOf(i)
	for k := range g.distances {
		d := g.distances[(start+k)%len(g.distances)]
		known = known.union(known.rotate(modulo(d, g.n), g.n).intersect(survivors))
	}
	return known
}

func modulo(a, n int) int { return (a%n + n) % n }
