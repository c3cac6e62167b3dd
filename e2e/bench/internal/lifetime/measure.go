package lifetime

import (
	"math"
	"math/rand/v2"
)

// Effort bounds the work of Measure.
type Effort struct {
	Enumerate int        // largest number of sets of one size that are enumerated
	Sample    int        // size of the sample if there are more sets
	Rand      *rand.Rand // source of the samples
}

// A Property of a set of crashes must be invariant under rotation of all members along the ring.
type Property func(crashed Set) bool

// A Share is the fraction of the sets of one size that have a property, with its confidence interval.
type Share struct{ Fraction, Low, High float64 }

// A Profile is a property's share by number of crashes, from 0 to n.
type Profile struct {
	Shares []Share
	Exact  bool // all shares were enumerated
}

// certainty returns the normal quantile for which all n+1 shares of a profile lie in their intervals with a
// probability of 95 %. For each share alone, the probability is 1 − 0.05/(n+1) (Bonferroni).
func certainty(n int) float64 { return math.Sqrt2 * math.Erfinv(1-0.05/float64(n+1)) }

// Measure computes the profile of each property in a group of n members. The caller knows that sets of
// fewer than from crashes have none of the properties. Each other set is passed to the properties in
// order.
func Measure(n, from int, e Effort, properties ...Property) []Profile {
	profiles := make([]Profile, len(properties))
	for p := range profiles {
		profiles[p] = Profile{Shares: make([]Share, n+1), Exact: true}
	}
	for k := from; k <= n; k++ {
		hits := make([]int, len(properties))
		count := func(crashed Set) {
			for p, has := range properties {
				if has(crashed) {
					hits[p]++
				}
			}
		}
		sets, exact := e.each(n, k, count)
		for p, h := range hits {
			fraction := float64(h) / float64(sets)
			share := Share{fraction, fraction, fraction}
			if !exact {
				share = wilson(fraction, float64(sets), certainty(n))
				profiles[p].Exact = false
			}
			profiles[p].Shares[k] = share
		}
	}
	return profiles
}

// each visits sets of k crashes of n: all of them, or a sample. Enumeration is limited to sets that
// contain member 0. Rotation along the ring maps every other set to one of these, and to each equally
// often.
func (e Effort) each(n, k int, visit func(Set)) (sets int, exact bool) {
	if k == 0 {
		visit(Set{})
		return 1, true
	}
	if all := math.Round(math.Exp(logChoose(n-1, k-1))); all <= float64(e.Enumerate) {
		subsets(setOf(0), 1, n, k-1, visit)
		return int(all), true
	}
	for range e.Sample {
		visit(draw(n, k, e.Rand))
	}
	return e.Sample, false
}

// subsets visits s with each choice of k members of from..n-1 added.
func subsets(s Set, from, n, k int, visit func(Set)) {
	if k == 0 {
		visit(s)
		return
	}
	for i := from; i <= n-k; i++ {
		next := s
		next.add(i)
		subsets(next, i+1, n, k-1, visit)
	}
}

// draw returns a random set of k of n members (Floyd's algorithm).
func draw(n, k int, rng *rand.Rand) Set {
	var s Set
	for top := n - k; top < n; top++ {
		if i := rng.IntN(top + 1); !s.Has(i) {
			s.add(i)
		} else {
			s.add(top)
		}
	}
	return s
}

// wilson returns the score interval of a fraction in a sample (Wilson 1927), which is also valid for
// fractions of 0 and 1.
func wilson(fraction, sample, z float64) Share {
	middle := fraction + z*z/(2*sample)
	half := z * math.Sqrt(fraction*(1-fraction)/sample+z*z/(4*sample*sample))
	whole := 1 + z*z/sample
	return Share{fraction, max(0, (middle-half)/whole), min(1, (middle+half)/whole)}
}

// At returns the probability of the property if each member crashes with probability f, 0 < f < 1, with
// its 95 % interval.
func (p Profile) At(f float64) Share {
	var sum Share
	n := len(p.Shares) - 1
	for k, share := range p.Shares {
		weight := math.Exp(logChoose(n, k) + float64(k)*math.Log(f) + float64(n-k)*math.Log1p(-f))
		sum.Fraction += weight * share.Fraction
		sum.Low += weight * share.Low
		sum.High += weight * share.High
	}
	return sum
}

func logChoose(n, k int) float64 {
	gamma := func(x int) float64 { g, _ := math.Lgamma(float64(x) + 1); return g }
	return gamma(n) - gamma(k) - gamma(n-k)
}
