package main

import (
	"context"
	"fmt"
	"io"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/lifetime"
)

// rates are the crash probabilities for which the results are computed.
var rates = []float64{0.01, 0.05, 0.1}

// ranks are the numbers of ranks of the jobs, with 2 and with 3 replicas.
var ranks = []int{2, 4, 8, 16, 32, 64, 128}

var schemes = []lifetime.Scheme{lifetime.BRR, lifetime.DBRR, lifetime.LiveDBRR}

// results holds the results for each job's group.
type results []group

// A group is the set of a job's members, with a detector for each scheme.
type group struct {
	job       lifetime.Job
	detectors []detector // in the order of schemes
}

// A detector holds the profiles of one scheme over the sets of crashes.
type detector struct {
	fewest int              // fewest crashes that may cut it
	cut    lifetime.Profile // sets in which the detector has failed
	first  lifetime.Profile // sets in which the detector has failed, and the application has not
	late   lifetime.Profile // sets in which a survivor looks failed
}

// compute measures every job of at most most members. It stops early when ctx ends.
func compute(ctx context.Context, e lifetime.Effort, most int, progress io.Writer) results {
	var r results
	for _, replicas := range []int{2, 3} {
		for _, n := range ranks {
			job := lifetime.Job{Ranks: n, Replicas: replicas}
			if job.Members() > most || ctx.Err() != nil {
				break
			}
			fmt.Fprintf(progress, "n=%d r=%d\n", n, replicas)
			g := group{job: job}
			for _, s := range schemes {
				if ctx.Err() != nil {
					break
				}
				g.detectors = append(g.detectors, measure(s, job, e))
			}
			r = append(r, g)
		}
	}
	return r
}

// lateEffort is the factor by which the effort for late is reduced. The check for late takes much longer,
// because it follows all rounds for every survivor.
const lateEffort = 8

func measure(s lifetime.Scheme, job lifetime.Job, e lifetime.Effort) detector {
	gossip := s.Among(job.Members())
	var cut bool // for the current set, because Cut is slow
	all := func(crashed lifetime.Set) bool { cut = gossip.Cut(crashed); return cut }
	first := func(crashed lifetime.Set) bool { return cut && job.Survives(crashed) }
	d := detector{fewest: gossip.FewestCut()}
	p := lifetime.Measure(job.Members(), d.fewest, e, all, first)
	d.cut, d.first = p[0], p[1]
	if job.Replicas == 2 && s != lifetime.LiveDBRR { // for other jobs the result is the same, and LiveDBRR is never late
		e.Enumerate, e.Sample = e.Enumerate/lateEffort, max(1, e.Sample/lateEffort)
		d.late = lifetime.Measure(job.Members(), 0, e, gossip.Late)[0]
	}
	return d
}
