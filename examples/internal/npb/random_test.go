package npb

import (
	"math"
	"testing"
)

// randlc is NPB's implementation of the generator, which computes the product modulo 2^46 in double
// precision, in halves of 23 bits.
func randlc(x *float64, a float64) float64 {
	const r23, t23, r46, t46 = 0x1p-23, 0x1p23, 0x1p-46, 0x1p46
	a1 := math.Trunc(r23 * a)
	a2 := a - t23*a1
	x1 := math.Trunc(r23 * *x)
	x2 := *x - t23*x1
	t1 := a1*x2 + a2*x1
	z := t1 - t23*math.Trunc(r23*t1)
	t3 := t23*z + a2*x2
	*x = t3 - t46*math.Trunc(r46*t3)
	return r46 * *x
}

func TestGeneratorMatchesNPB(t *testing.T) {
	theirs, r := float64(Seed), Seed
	for i := range 100_000 {
		want := randlc(&theirs, multiplier)
		var got float64
		if r, got = r.Next(); got != want || float64(r) != theirs {
			t.Fatalf("number %d is %v (state %d), want %v (%v)", i, got, r, want, theirs)
		}
	}
}

func TestSkipEqualsRepeatedNext(t *testing.T) {
	r := Seed
	for n := range uint64(1000) {
		if got := Seed.Skip(n); got != r {
			t.Fatalf("state after %d numbers is %d, want %d", n, got, r)
		}
		r, _ = r.Next()
	}
}

func TestFillEqualsRepeatedNext(t *testing.T) {
	r, numbers := Seed, make([]float64, 100)
	end := r.Fill(numbers)
	for i, got := range numbers {
		var want float64
		if r, want = r.Next(); got != want {
			t.Fatalf("number %d is %v, want %v", i, got, want)
		}
	}
	if end != r {
		t.Errorf("Fill ends in state %d, want %d", end, r)
	}
}
