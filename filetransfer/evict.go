package filetransfer

import (
	"cmp"
	"slices"
)

// A candidate is content that no running job uses.
type candidate struct {
	digest Digest
	bytes  int64  // what its eviction frees
	used   uint64 // when it was used last, in uses of the store
}

// chooseEvictions picks what to evict so that at least excess bytes come free:
// the least recently used first, and no more than needed (promise T4). ok is
// false, and nothing is picked, when all candidates together do not suffice.
func chooseEvictions(candidates []candidate, excess int64) (drop []Digest, ok bool) {
	if excess <= 0 {
		return nil, true
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.used, b.used), slices.Compare(a.digest[:], b.digest[:]))
	})
	for _, c := range candidates {
		drop = append(drop, c.digest)
		if excess -= c.bytes; excess <= 0 {
			return drop, true
		}
	}
	return nil, false
}
