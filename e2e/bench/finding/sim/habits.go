package sim

import (
	"math"
	"math/rand/v2"
)

// Habits is the distribution of the hours that volunteers' machines are up and away.
type Habits struct {
	UpShape, UpScale    float64 // parameters of a Weibull distribution
	AwayMean, AwaySigma float64 // parameters of the logarithm of a log-normal distribution
}

// seti is the fit by Javadi, Kondo, Vincent and Anderson to all hosts of SETI@home ("Discovering
// Statistical Models of Availability in Large Distributed Systems: An Empirical Study of SETI@home", IEEE
// TPDS 22(11), 2011). The figures are those of the volunteer-computing simulator ComBoS (Alonso-Monsalve
// et al., 2017) for these hosts.
var seti = Habits{UpShape: 0.393, UpScale: 2.964, AwayMean: -0.586, AwaySigma: 2.444}

func (h Habits) up(rnd *rand.Rand) float64 {
	return h.UpScale * math.Pow(-math.Log(1-rnd.Float64()), 1/h.UpShape)
}

func (h Habits) away(rnd *rand.Rand) float64 {
	return math.Exp(h.AwayMean + h.AwaySigma*rnd.NormFloat64())
}

// history is the simulated time before a search, in hours. It is long compared with most sessions and
// with the lifetime of records.
const history = 30 * 24

// A session is an interval of hours in which a peer is up; the search begins at 0.
type session struct{ from, to float64 }

// sessions draws the sessions of one volunteer up to hour 0, the last one first. The history starts at a
// random time between one and two history lengths ago.
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
