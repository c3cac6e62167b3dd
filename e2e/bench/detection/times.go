package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/faultdetect/sim"
)

// period is the heartbeat period in the measurements of the authors of P2P-MPI.
const period = time.Second

// originalTimes are the mean detection times that the authors of P2P-MPI measured, in seconds.
var originalTimes = map[int]string{8: "7.29", 16: "9.34", 32: "10.65", 64: "13.35", 128: "15.19", 192: "17.50"}

// A fault is a way for a member to fall silent.
type fault struct {
	name string
	end  func(w *sim.World, member int, at time.Duration)
}

var faults = []fault{
	{"silent host", (*sim.World).Crash},
	{"process killed", (*sim.World).Kill},
	{"link cut", func(w *sim.World, member int, at time.Duration) {
		w.Cut = func(from, to int) bool { return w.Now >= at && (from == member || to == member) }
	}},
	{"process stopped", func(w *sim.World, member int, at time.Duration) { w.Pause(member, at, math.MaxInt64) }},
}

func sizes(o options) []int {
	s := []int{8, 16, 32, 64, 128, 192}
	if o.large {
		s = append(s, 1024, 10000)
	}
	return s
}

// runs returns the number of groups of n that lose a member.
func runs(n int) int { return max(1, min(100, 3000/n)) }

// detectionTimes returns the table of detection times, for each size, fault and mode.
func detectionTimes(o options) ([][]string, error) {
	rows := [][]string{{"n", "fault", "P2P-MPI: mean", "gossip: min", "mean", "max", "σ", "fast: min", "mean", "max", "σ"}}
	for _, n := range sizes(o) {
		for _, f := range faults {
			if n > 1024 && f.name != "silent host" && f.name != "process killed" {
				continue // takes minutes, with the same result as a silent host
			}
			row := []string{fmt.Sprint(n), f.name, ""}
			if f.name == "silent host" {
				row[2] = originalTimes[n]
			}
			for _, mode := range []faultdetect.Mode{faultdetect.Gossip, faultdetect.Fast} {
				times, err := sample(n, faultdetect.Config{Period: period, Mode: mode}, f, o.seed)
				if err != nil {
					return nil, err
				}
				row = append(row, figures(times)...)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// schemeTimes compares the target schemes, with detection by gossip alone.
func schemeTimes(o options) ([][]string, error) {
	rows := [][]string{{"n", "targets", "rounds", "min", "mean", "max", "σ"}}
	for _, n := range []int{8, 32, 128} {
		for _, targets := range []faultdetect.Targets{faultdetect.BRR, faultdetect.DBRR, faultdetect.RoundRobin, faultdetect.Random} {
			c := faultdetect.Config{Period: period, Mode: faultdetect.Gossip, Targets: targets}
			times, err := sample(n, c, faults[0], o.seed)
			if err != nil {
				return nil, err
			}
			rows = append(rows, append([]string{fmt.Sprint(n), targets.String(), fmt.Sprint(targets.Rounds(n))}, figures(times)...))
		}
	}
	return rows, nil
}

// sample makes groups of n lose one member each. It returns the detection time of each survivor, in
// seconds.
func sample(n int, c faultdetect.Config, f fault, seed uint64) (times []float64, err error) {
	for r := range runs(n) {
		w, err := sim.New(n, c, seed+uint64(r))
		if err != nil {
			return nil, err
		}
		w.RandomPhases()
		lost := w.Rand.IntN(n)
		turn := c.Targets.Rounds(n)
		at := time.Duration(turn+2)*period + time.Duration(w.Rand.Int64N(int64(min(turn, 16))*int64(period)))
		f.end(w, lost, at)
		w.Run(at + time.Duration(turn+3)*period)
		for i := range n {
			when, failed := w.Failed[sim.Pair{Observer: i, Member: lost}]
			if i == lost {
				continue
			}
			if !failed {
				return nil, fmt.Errorf("%v, %s: member %d has not detected the failure of member %d", w, f.name, i, lost)
			}
			times = append(times, (when - at).Seconds())
		}
		for p := range w.Failed {
			if p.Member != lost && p.Observer != lost {
				return nil, fmt.Errorf("%v, %s: member %d counts as failed at member %d", w, f.name, p.Member, p.Observer)
			}
		}
	}
	return times, nil
}

// figures returns the minimum, mean, maximum and standard deviation.
func figures(xs []float64) []string {
	if len(xs) == 0 {
		return []string{"–", "–", "–", "–"}
	}
	var sum, squares float64
	for _, x := range xs {
		sum, squares = sum+x, squares+x*x
	}
	mean := sum / float64(len(xs))
	show := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	return []string{show(slices.Min(xs)), show(mean), show(slices.Max(xs)), show(math.Sqrt(max(0, squares/float64(len(xs))-mean*mean)))}
}
