package lifetime

import "math/bits"

// MaxMembers is the size of the largest group that the package supports.
const MaxMembers = 256

// A Set is a set of members of a group of at most MaxMembers.
type Set [MaxMembers / 64]uint64

// setOf returns the set of these members.
func setOf(members ...int) Set {
	var s Set
	for _, i := range members {
		s.add(i)
	}
	return s
}

// allOf returns the set of all n members.
func allOf(n int) Set {
	var s Set
	for w := range s {
		switch {
		case n >= 64*(w+1):
			s[w] = ^uint64(0)
		case n > 64*w:
			s[w] = 1<<(n-64*w) - 1
		}
	}
	return s
}

func (s *Set) add(i int) { s[i/64] |= 1 << (i % 64) }

// Has reports whether i is in the set.
func (s Set) Has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// Len returns how many members are in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// first returns the least member of a set, or -1 for the empty set.
func (s Set) first() int {
	for w := range s {
		if s[w] != 0 {
			return 64*w + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

func (s Set) union(t Set) Set {
	for w := range s {
		s[w] |= t[w]
	}
	return s
}

func (s Set) intersect(t Set) Set {
	for w := range s {
		s[w] &= t[w]
	}
	return s
}

func (s Set) minus(t Set) Set {
	for w := range s {
		s[w] &^= t[w]
	}
	return s
}

// rotate moves each member i of a set among n to (i+d) mod n, 0 ≤ d < n. The result may contain elements
// beyond n; the caller has to intersect it with a set of members.
func (s Set) rotate(d, n int) Set { return s.up(d).union(s.down(n - d)) }

func (s Set) up(d int) (to Set) {
	words, rest := d/64, d%64
	for w := len(s) - 1; w >= words; w-- {
		to[w] = s[w-words] << rest
		if w > words {
			to[w] |= s[w-words-1] >> (64 - rest) // nothing if rest is 0
		}
	}
	return to
}

func (s Set) down(d int) (to Set) {
	words, rest := d/64, d%64
	for w := 0; w+words < len(s); w++ {
		to[w] = s[w+words] >> rest
		if w+words+1 < len(s) {
			to[w] |= s[w+words+1] << (64 - rest)
		}
	}
	return to
}
