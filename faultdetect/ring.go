package faultdetect

import "slices"

// A ring is one member's view of the group's order, without the failed members. So survivors that agree
// on the failed members gossip as a group of their own would. The round, and with it the distance,
// remains that of all n members, so that they agree on it even before.
type ring struct {
	n    int
	gone []int // failed members, ascending
}

// live returns the number of members that have not failed.
func (r ring) live() int { return r.n - len(r.gone) }

// without returns the ring after member has failed as well.
func (r ring) without(member int) ring {
	i, found := slices.BinarySearch(r.gone, member)
	if found {
		return r
	}
	gone := make([]int, 0, len(r.gone)+1)
	gone = append(append(append(gone, r.gone[:i]...), member), r.gone[i:]...)
	return ring{n: r.n, gone: gone}
}

// from returns the member that is hops live members after a live one, or before it if hops is negative.
func (r ring) from(member, hops int) int {
	before, _ := slices.BinarySearch(r.gone, member)
	to := modulo(member-before+hops, r.live())
	for _, g := range r.gone {
		if g > to {
			break
		}
		to++
	}
	return to
}

// hops returns the distance of a round in live members.
func (r ring) hops(t Targets, member int, heartbeat uint64) int {
	h := modulo(t.distance(r.n, member, heartbeat), r.live())
	if h == 0 { // a multiple of the number of survivors: the target would be the member itself
		h = 1
	}
	return h
}

// target returns the member to which a live member sends in a round. ok is false if no other member is
// live.
func (r ring) target(t Targets, member int, heartbeat uint64) (to int, ok bool) {
	if r.live() < 2 {
		return 0, false
	}
	return r.from(member, r.hops(t, member, heartbeat)), true
}

// source returns the member that sends to a live member in a round: the inverse of target. ok is false if
// no other member is live, and for Random, which has no inverse.
func (r ring) source(t Targets, member int, heartbeat uint64) (from int, ok bool) {
	if r.live() < 2 || t == Random {
		return 0, false
	}
	return r.from(member, -r.hops(t, member, heartbeat)), true
}
