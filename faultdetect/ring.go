package faultdetect

import "slices"

// A ring is the members of a group in their order, as one of them sees it: who
// has failed is not counted. So survivors that agree on who has failed gossip
// among themselves as a group of their own would; the round, and with it the
// distance, stays that of all n, so that they agree on it even before.
type ring struct {
	n    int
	gone []int // failed members, ascending
}

// live is how many members are left.
func (r ring) live() int { return r.n - len(r.gone) }

// without is the ring when member has failed as well.
func (r ring) without(member int) ring {
	i, found := slices.BinarySearch(r.gone, member)
	if found {
		return r
	}
	gone := make([]int, 0, len(r.gone)+1)
	gone = append(append(append(gone, r.gone[:i]...), member), r.gone[i:]...)
	return ring{n: r.n, gone: gone}
}

// from returns the member that is hops live members after one that is live, or
// before it when hops is negative.
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

// hops is the distance of a round among those that are left.
func (r ring) hops(t Targets, member int, heartbeat uint64) int {
	h := modulo(t.distance(r.n, member, heartbeat), r.live())
	if h == 0 { // a multiple of the survivors' number: it would be itself
		h = 1
	}
	return h
}

// target returns to whom a live member sends in a round. ok is false when
// nobody else is live.
func (r ring) target(t Targets, member int, heartbeat uint64) (to int, ok bool) {
	if r.live() < 2 {
		return 0, false
	}
	return r.from(member, r.hops(t, member, heartbeat)), true
}

// source returns who sends to a live member in a round: the converse of target.
// ok is false when nobody else is live, and for Random, which has no converse.
func (r ring) source(t Targets, member int, heartbeat uint64) (from int, ok bool) {
	if r.live() < 2 || t == Random {
		return 0, false
	}
	return r.from(member, -r.hops(t, member, heartbeat)), true
}
