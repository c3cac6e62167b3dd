package lifetime

import (
	"math"
	"math/rand/v2"
	"testing"
)

// all enumerates every set.
var all = Effort{Enumerate: math.MaxInt}

func within(t *testing.T, name string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s: %g, want %g", name, got, want)
	}
}

// TestBinaryRoundRobinIsLessReliableThanTheApplication uses the literature's example: for n=2, r=2 and f=0.05,
// the detector fails with probability 0.0095, the application with 0.005.
func TestBinaryRoundRobinIsLessReliableThanTheApplication(t *testing.T) {
	job := Job{Ranks: 2, Replicas: 2}
	for _, f := range []float64{0.01, 0.05, 0.1, 0.7} {
		cut := Measure(4, 0, all, BRR.Among(4).Cut)[0]
		within(t, "detector", cut.At(f).Fraction, 4*f*f-4*f*f*f+f*f*f*f, 1e-12)
		within(t, "application", job.Fails(f), 2*f*f-f*f*f*f, 1e-12)
		if cut.At(f).Fraction <= job.Fails(f) {
			t.Errorf("f=%v: the detector fails with %g, the application with %g", f, cut.At(f).Fraction, job.Fails(f))
		}
	}
	within(t, "detector", Measure(4, 0, all, BRR.Among(4).Cut)[0].At(0.05).Fraction, 0.0095, 2e-3)
	within(t, "application", job.Fails(0.05), 0.005, 2e-3)
}

// TestDoubleBinaryRoundRobinIsMoreReliableThanTheApplication uses 4 members, which are cut only if fewer than
// two survive.
func TestDoubleBinaryRoundRobinIsMoreReliableThanTheApplication(t *testing.T) {
	job := Job{Ranks: 2, Replicas: 2}
	for _, f := range []float64{0.01, 0.05, 0.1} {
		got := Measure(4, 0, all, DBRR.Among(4).Cut)[0].At(f).Fraction
		within(t, "detector", got, 4*f*f*f*(1-f)+f*f*f*f, 1e-12)
		if got >= job.Fails(f) {
			t.Errorf("f=%v: the detector fails with %g, the application with %g", f, got, job.Fails(f))
		}
	}
}

func TestMeasureMatchesEnumeration(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for _, scheme := range []Scheme{BRR, DBRR, LiveDBRR} {
			g, f := scheme.Among(n), 0.3
			var want float64
			for crashed := range uint64(1) << n {
				if s := (Set{crashed}); g.Cut(s) {
					want += math.Pow(f, float64(s.Len())) * math.Pow(1-f, float64(n-s.Len()))
				}
			}
			for _, from := range []int{0, g.FewestCut()} {
				p := Measure(n, from, all, g.Cut)[0]
				if got := p.At(f); !p.Exact || math.Abs(got.Fraction-want) > 1e-12 || got.Low != got.High {
					t.Errorf("%v of %d: %v, want %g", scheme, n, got, want)
				}
			}
		}
	}
}

func TestSampleIntervalContainsTheExactValue(t *testing.T) {
	g, f := BRR.Among(16), 0.05
	want := Measure(16, 0, all, g.Cut)[0].At(f).Fraction
	for seed := range uint64(20) {
		p := Measure(16, g.FewestCut(), Effort{Enumerate: 100, Sample: 500, Rand: rand.New(rand.NewPCG(seed, 0))}, g.Cut)[0]
		if got := p.At(f); p.Exact || want < got.Low || want > got.High || got.Low > got.Fraction || got.Fraction > got.High {
			t.Errorf("seed %d: %+v, want %g within", seed, got, want)
		}
	}
}

func TestProbabilitiesAddUpToOne(t *testing.T) {
	always := func(Set) bool { return true }
	p := Measure(200, 0, Effort{Sample: 1, Rand: rand.New(rand.NewPCG(0, 0))}, always)[0]
	within(t, "anything", p.At(0.1).Fraction, 1, 1e-9)
}

// TestWilson includes a sample without any hit, which bounds the fraction from above by z²/(n+z²).
func TestWilson(t *testing.T) {
	none, some := wilson(0, 96, 2), wilson(0.5, 96, 2)
	within(t, "none: low", none.Low, 0, 0)
	within(t, "none: high", none.High, 0.04, 1e-12)
	within(t, "half: low", some.Low, 0.4, 1e-12)
	within(t, "half: high", some.High, 0.6, 1e-12)
	within(t, "certainty of one share", certainty(0), 1.959964, 1e-6)
}
