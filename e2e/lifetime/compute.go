package main

import (
	"context"
	"fmt"
	"io"

	"github.com/p2pmpi/p2pmpi/faultdetect/lifetime"
)

// rates are the probabilities of a crash that are computed.
var rates = []float64{0.01, 0.05, 0.1}

// ranks are the jobs' n, with 2 and with 3 replicas.
var ranks = []int{2, 4, 8, 16, 32, 64, 128}

var schemes = []lifetime.Scheme{lifetime.BRR, lifetime.DBRR, lifetime.LiveDBRR}

// results are what was found out of each job's group.
type results []group

// A group is a job's members, with a detector of each scheme.
type group struct {
	job       lifetime.Job
	detectors []detector // as schemes
}

// A detector has profiles over the sets of crashes.
type detector struct {
	fewest int              // crashes that may cut
	cut    lifetime.Profile // it has failed
	first  lifetime.Profile // it has failed, and the application has not
	late   lifetime.Profile // a survivor looks failed
}

// compute measures every job of at most so many members; fewer once ctx has ended.
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

// lateEffort is how much less is tried of what takes so much longer to find out:
// whether news is late takes a walk through all rounds for every survivor.
const lateEffort = 8

func measure(s lifetime.Scheme, job lifetime.Job, e lifetime.Effort) detector {
	gossip := s.Among(job.Members())
	var cut bool // of the set that is looked at: Cut takes its time
	all := func(crashed lifetime.Set) bool { cut = gossip.Cut(crashed); return cut }
	first := func(crashed lifetime.Set) bool { return cut && job.Survives(crashed) }
	d := detector{fewest: gossip.FewestCut()}
	p := lifetime.Measure(job.Members(), d.fewest, e, all, first)
	d.cut, d.first = p[0], p[1]
	if job.Replicas == 2 && s != lifetime.LiveDBRR { // replicas do not matter to it, and ours never is
		e.Enumerate, e.Sample = e.Enumerate/lateEffort, max(1, e.Sample/lateEffort)
		d.late = lifetime.Measure(job.Members(), 0, e, gossip.Late)[0]
	}
	return d
}
