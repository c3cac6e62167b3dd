package faultdetect

import (
	"math/bits"
	"slices"
)

// sentAccusation is an accusation that this member has passed on along one tree.
type sentAccusation struct {
	about int
	tree  Tree
	reach int
	until int // value of periods before which it is not passed on again
}

// repeatAfter is the number of periods in which an accusation is not repeated. So a member that
// repeatedly accuses a live member causes at most one probe per repeatAfter periods at each other member.
const repeatAfter = 2

// accusations holds the accusations that this member has passed on recently.
type accusations []sentAccusation

// add records an accusation. It returns false if the same accusation was passed on recently with at
// least this reach.
func (as *accusations) add(a sentAccusation) bool {
	i := slices.IndexFunc(*as, func(b sentAccusation) bool { return b.about == a.about && b.tree == a.tree })
	switch {
	case i < 0:
		*as = append(*as, a)
	case (*as)[i].reach < a.reach:
		(*as)[i] = a
	default:
		return false
	}
	return true
}

// expire drops the accusations that may be passed on again.
func (as *accusations) expire(periods int) {
	*as = slices.DeleteFunc(*as, func(a sentAccusation) bool { return a.until <= periods })
}

// accusationsFrom returns the accusations by which self covers the next reach members in a tree's order. The
// first is for the member 2^k positions on, which covers the members beyond. The others are for the members
// 2^(k-1), 2^(k-2), … positions on, as far as these are not covered yet. So all members have the accusation
// after ⌈log₂ n⌉ steps (the binary tree of P2P-MPI). The tree uses the same connections as the tables. Failed
// members and the accused one are skipped.
func (r ring) accusationsFrom(self, about int, tree Tree, reach int) (all []Message) {
	r = r.without(about)
	for reach = min(reach, r.live()-1); reach > 0; {
		hop := 1 << (bits.Len(uint(reach)) - 1)
		m := Message{From: self, To: r.from(self, hop), Kind: Accuse, About: about, Tree: tree, Reach: reach - hop}
		if tree == Backward {
			m.To = r.from(self, -hop)
		}
		all = append(all, m)
		reach = hop - 1
	}
	return all
}
