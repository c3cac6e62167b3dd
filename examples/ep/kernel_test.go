package main

import (
	"math"
	"testing"
)

// randlc is NPB's generator as it is written there: the product modulo 2^46 in
// double precision, by halves of 23 bits.
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

func TestGeneratorIsThatOfNPB(t *testing.T) {
	theirs, state := float64(seed), uint64(seed)
	for i := range 100_000 {
		want := 2*randlc(&theirs, multiplier) - 1
		var got float64
		if got, state = next(state); got != want || float64(state) != theirs {
			t.Fatalf("number %d is %v (state %d), want %v (%v)", i, got, state, want, theirs)
		}
	}
}

func TestPowerJumpsAhead(t *testing.T) {
	state := uint64(seed)
	for n := range uint64(1000) {
		if got := seed * power(multiplier, n) % modulus; got != state {
			t.Fatalf("state after %d steps is %d, want %d", n, got, state)
		}
		_, state = next(state)
	}
}

func BenchmarkBatch(b *testing.B) {
	var q annuli
	for i := 0; b.Loop(); i++ {
		batch(i, &q)
	}
	b.ReportMetric(float64(b.N)*2*batchPairs/1e6/b.Elapsed().Seconds(), "Mop/s")
}
