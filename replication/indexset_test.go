package replication

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestIndexSetContainsAddedIndices(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var s indexSet
	in := make(map[uint64]bool)
	for range 2000 {
		i := uint64(rng.IntN(600))
		if rng.IntN(10) == 0 {
			i = math.MaxUint64 - i
		}
		if s.contains(i) != in[i] {
			t.Fatalf("the set contains %d: %v", i, !in[i])
		}
		if !in[i] {
			in[i] = true
			s.add(i)
		}
	}
	for k, sp := range s.spans {
		if sp.lo > sp.hi || k > 0 && s.spans[k-1].hi+1 >= sp.lo {
			t.Fatalf("span %d of %v is empty, or touches the previous one", k, s.spans)
		}
	}
}

func TestIndexSetOfARunIsOneSpan(t *testing.T) {
	for _, start := range []uint64{0, 1, 1000} {
		var s indexSet
		for _, i := range rand.Perm(500) {
			s.add(start + uint64(i))
		}
		if len(s.spans) != 1 || s.spans[0] != (span{start, start + 499}) {
			t.Errorf("from %d: %v", start, s.spans)
		}
	}
}
