package sim

import (
	"math"
	"math/rand/v2"
)

// Habits say how long volunteers' machines are up and away, in hours.
type Habits struct {
	UpShape, UpScale    float64 // of a Weibull distribution
	AwayMean, AwaySigma float64 // of the logarithm, in a log-normal distribution
}

// SETI is what Javadi, Kondo, Vincent and Anderson fitted to the hosts of
// SETI@home taken together ("Discovering Statistical Models of Availability in
// Large Distributed Systems: An Empirical Study of SETI@home", IEEE TPDS 22(11),
// 2011), with the figures that the volunteer-computing simulator ComBoS
// (Alonso-Monsalve et al., 2017) carries as its own for these hosts.
var SETI = Habits{UpShape: 0.393, UpScale: 2.964, AwayMean: -0.586, AwaySigma: 2.444}

func (h Habits) up(rnd *rand.Rand) float64 {
	return h.UpScale * math.Pow(-math.Log(1-rnd.Float64()), 1/h.UpShape)
}

func (h Habits) away(rnd *rand.Rand) float64 {
	return math.Exp(h.AwayMean + h.AwaySigma*rnd.NormFloat64())
}

// history is how long a volunteer is watched before a search: long beside most of
// what it does, and beside the life of records.
const history = 30 * 24

// A session is the hours that a peer is up; the search begins at 0.
type session struct{ from, to float64 }

// sessions draws what one volunteer did until it is clear whether it is up at 0, the
// last one first. It is watched from some point of a life of its own.
func (h Habits) sessions(rnd *rand.Rand) []session {
	var all []session
	for t := -history * (1 + rnd.Float64()); t < 0; {
		from := t + h.away(rnd)
		t = from + h.up(rnd)
		if from < 0 && t > -2*recordLife {
			all = append([]session{{from, t}}, all...)
		}
	}
	return all
}
