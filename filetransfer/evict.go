package filetransfer

import (
	"cmp"
	"slices"
)

// A candidate is content that no running job uses.
type candidate struct {
	digest Digest
	bytes  int64  // bytes that its eviction frees
	used   uint64 // value of the store's use counter at the last use
}

// chooseEvictions selects the contents to evict to free at least excess bytes: the least recently used first,
// and no more than needed (promise T4). If all candidates together do not suffice, it selects nothing and ok
// is false.
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
