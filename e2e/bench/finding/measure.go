package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/finding/sim"
)

// wanted is the number of peers to find: n·r of the job.
const wanted = 64

// sizes are the numbers of live peers in the networks. A smaller network hardly has enough suitable
// peers.
var sizes = []int{300, 1000, 3000, 10_000, 30_000}

// kinds are the kinds of searchers.
var kinds = []string{"a peer", "a newcomer"}

// A sample is the set of searches in worlds of one kind.
type sample struct {
	name     string // the setting that differs in these worlds
	live     int
	outcomes [2][]sim.Outcome // by kind of searcher
}

// measure searches in worlds of one kind. It stops early when ctx ends.
func measure(ctx context.Context, o options, c sim.Config) sample {
	s := sample{live: c.Live}
	for i := range uint64(o.worlds) {
		if ctx.Err() != nil {
			break
		}
		c.Seed = o.seed + i
		w := sim.New(c)
		for k := range kinds {
			s.outcomes[k] = append(s.outcomes[k], w.Search(wanted, k == 1))
		}
	}
	return s
}

// grow measures networks of each size.
func grow(ctx context.Context, o options, progress io.Writer) []sample {
	var all []sample
	for _, n := range sizes {
		if n > o.most || ctx.Err() != nil {
			break
		}
		fmt.Fprintf(progress, "%d peers\n", n)
		c := sim.DefaultConfig()
		c.Live = n
		all = append(all, measure(ctx, o, c))
	}
	return all
}

// limits measures the effect of other settings.
func limits(ctx context.Context, o options, progress io.Writer) []sample {
	var all []sample
	for _, tt := range []struct {
		name   string
		change func(*sim.Config)
	}{
		{"default settings", func(*sim.Config) {}},
		{"8 asked at a time", func(c *sim.Config) { c.Discovery.Parallel, c.Discovery.ParallelPerSlot = 8, 0 }},
		{"32 asked at a time", func(c *sim.Config) { c.Discovery.ParallelPerSlot = 0 }},
		{"256 asked at a time", func(c *sim.Config) { c.Discovery.ParallelPerSlot = 4 }},
		{"100 records of a lookup, the library's default", func(c *sim.Config) { c.Found = 100 }},
		{"2,000 records of a lookup", func(c *sim.Config) { c.Found = 2000 }},
		{"wait of 1 s for late answers", func(c *sim.Config) { c.Discovery.Grace *= 5 }},
		{"known positions of nine tenths of the peers", func(c *sim.Config) { c.Placed = 0.9 }},
		{"half as many suitable idle peers", func(c *sim.Config) { c.Suitable /= 2 }},
		{"peers up for a tenth of the time", func(c *sim.Config) { c.Habits.UpScale /= 10 }},
	} {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintln(progress, tt.name)
		c := sim.DefaultConfig()
		c.Live = min(10_000, o.most)
		tt.change(&c)
		s := measure(ctx, o, c)
		s.name = tt.name
		all = append(all, s)
	}
	return all
}

// quantile returns the value below which the given share of the outcomes lies.
func quantile[T cmp.Ordered](outcomes []sim.Outcome, share float64, of func(sim.Outcome) T) T {
	var values []T
	for _, o := range outcomes {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return values[int(share*float64(len(values)-1)+0.5)]
}
