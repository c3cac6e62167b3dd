package replication

import (
	"math"
	"slices"
	"sort"
)

// An indexSet is a set of numbers, stored as ranges. The indices of decided points arrive nearly in order and
// without gaps, so a whole run needs one or two spans, whatever the engine's first index is.
type indexSet struct{ spans []span }

// A span is the range lo..hi, both included.
type span struct{ lo, hi uint64 }

// at returns the index of the first span that does not end before i.
func (s *indexSet) at(i uint64) int {
	if n := len(s.spans); n == 0 || s.spans[n-1].hi < i {
		return n // the usual case
	}
	return sort.Search(len(s.spans), func(k int) bool { return s.spans[k].hi >= i })
}

func (s *indexSet) contains(i uint64) bool {
	k := s.at(i)
	return k < len(s.spans) && s.spans[k].lo <= i
}

// add adds i, which must not be in the set.
func (s *indexSet) add(i uint64) {
	k := s.at(i)
	left := k > 0 && s.spans[k-1].hi+1 == i
	right := k < len(s.spans) && i != math.MaxUint64 && i+1 == s.spans[k].lo
	switch {
	case left && right:
		s.spans[k-1].hi = s.spans[k].hi
		s.spans = slices.Delete(s.spans, k, k+1)
	case left:
		s.spans[k-1].hi = i
	case right:
		s.spans[k].lo = i
	default:
		s.spans = slices.Insert(s.spans, k, span{i, i})
	}
}

// addUpTo adds all numbers up to n.
func (s *indexSet) addUpTo(n uint64) {
	k := s.at(n)
	all := span{0, n}
	if k < len(s.spans) && (s.spans[k].lo <= n || s.spans[k].lo-1 == n) {
		all.hi = s.spans[k].hi
		k++
	}
	s.spans = slices.Insert(slices.Delete(s.spans, 0, k), 0, all)
}
