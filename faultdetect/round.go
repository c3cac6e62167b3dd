package faultdetect

import "math/bits"

// Targets is a scheme that determines to which member a table is sent in a round. A round is identified
// by the sender's heartbeat; with aligned counters, all members are in the same round.
type Targets byte

// The schemes of P2P-MPI, where k is the number of the round, from 1, and L = ⌈log₂ n⌉.
const (
	DBRR       Targets = iota // double binary round robin: +2^(k-1) for k ≤ L, -2^(k-L-1) for L < k ≤ 2L
	BRR                       // binary round robin: +2^(k-1) for k ≤ L
	RoundRobin                // +k for k < n
	Random                    // any member: the original gossip (van Renesse 1998)
)

var targetNames = [...]string{DBRR: "DBRR", BRR: "BRR", RoundRobin: "round robin", Random: "random"}

// String returns the name of the scheme in the literature.
func (t Targets) String() string { return name(targetNames[:], "targets", byte(t)) }

// Rounds returns the number of silent periods that make a member suspect in a group of n. After so many
// rounds the scheme has brought news of every member to every other, and all schemes but Random repeat.
// Random guarantees no number; 3⌈log₂ n⌉ + 2 is rarely exceeded, and a suspect is asked before it is
// failed.
func (t Targets) Rounds(n int) int {
	switch l := HalfRounds(n); {
	case n < 2:
		return 0
	case t == BRR:
		return l
	case t == RoundRobin:
		return n - 1
	case t == Random:
		return 3*l + 2
	default:
		return 2 * l
	}
}

// distance returns the distance between sender and target in a round, and 0 if n < 2. The distance is the
// same for all members, except with Random.
func (t Targets) distance(n, member int, heartbeat uint64) int {
	l := uint64(HalfRounds(n))
	if l == 0 {
		return 0
	}
	switch t {
	case BRR:
		return 1 << (heartbeat % l)
	case RoundRobin:
		return 1 + int(heartbeat%uint64(n-1))
	case Random:
		return 1 + int(mix(heartbeat<<16^uint64(member))%uint64(n-1))
	}
	k := heartbeat % (2 * l) // one less than the round number of the papers
	if k < l {
		return 1 << k
	}
	return -(1 << (k - l))
}

// mix is the finalizer of splitmix64 (Steele et al. 2014). It derives a pseudo-random target from the
// sender and the round.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// HalfRounds returns L = ⌈log₂ n⌉, the number of rounds after which binary round robin has brought a
// heartbeat to all n members.
func HalfRounds(n int) int {
	if n < 2 {
		return 0
	}
	return bits.Len(uint(n - 1))
}

// Target returns the member to which self sends its table by double binary round robin, if no member has
// failed. It returns self if n < 2.
func Target(n, self int, heartbeat uint64) int {
	return modulo(self+DBRR.distance(n, 0, heartbeat), n)
}

func modulo(a, n int) int { return (a%n + n) % n }
