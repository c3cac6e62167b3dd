package lifetime

import (
	"math/rand/v2"
	"testing"
)

func TestRotateMovesEveryMember(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 5, 63, 64, 65, 100, 128, 200, 255, 256} {
		for range 50 {
			s, want, d := draw(n, rng.IntN(n+1), rng), Set{}, rng.IntN(n)
			for i := range n {
				if s.Has(i) {
					want.add((i + d) % n)
				}
			}
			if got := s.rotate(d, n).intersect(allOf(n)); got != want {
				t.Fatalf("n=%d: %x moved by %d is %x, want %x", n, s, d, got, want)
			}
		}
	}
}

func TestAllOf(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 256} {
		if got := allOf(n).Len(); got != n {
			t.Errorf("allOf(%d) has %d members", n, got)
		}
	}
}

func TestDrawIsUniform(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, k, draws = 10, 3, 20000
	var times [n]int
	for range draws {
		s := draw(n, k, rng)
		if s.Len() != k {
			t.Fatalf("drew %d of %d, want %d", s.Len(), n, k)
		}
		for i := range n {
			if s.Has(i) {
				times[i]++
			}
		}
	}
	for i, got := range times { // expected 6000, σ 65
		if got < 5600 || got > 6400 {
			t.Errorf("member %d drawn %d times of %d", i, got, draws)
		}
	}
}
