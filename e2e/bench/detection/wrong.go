package main

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/faultdetect/sim"
)

// A condition is a disturbance of the group, during which no member should be failed.
type condition struct {
	name string
	hang time.Duration // hang that the detectors tolerate
	make func(w *sim.World, until time.Duration)
}

func loss(fraction float64) func(*sim.World, time.Duration) {
	return func(w *sim.World, _ time.Duration) { w.Loss = fraction }
}

var conditions = []condition{
	{"no loss", 0, loss(0)},
	{"1 % loss", 0, loss(0.01)},
	{"5 % loss", 0, loss(0.05)},
	{"10 % loss", 0, loss(0.10)},
	{"every second member cannot send to its successor", 0, func(w *sim.World, _ time.Duration) {
		n := len(w.Detectors)
		w.Cut = func(from, to int) bool { return from%2 == 0 && to == (from+1)%n }
	}},
	{"members suspended at random, up to the tolerated hang of 2 periods", 2 * period, pauses},
	{"the same, and 5 % loss", 2 * period, func(w *sim.World, until time.Duration) {
		w.Loss = 0.05
		pauses(w, until)
	}},
}

// pauses suspends each member about once a minute.
func pauses(w *sim.World, until time.Duration) {
	for i := range w.Detectors {
		for at := 10 * period; at < until; {
			on := at + time.Duration(w.Rand.Int64N(int64(2*period)))
			w.Pause(i, at, on)
			at = on + time.Duration(w.Rand.Int64N(int64(2*time.Minute)))
		}
	}
}

// falseFailures returns the table of how often a member declares a live member failed.
func falseFailures(o options) ([][]string, error) {
	rows := [][]string{{"n", "condition", "hours", "gossip: false failures per hour", "suspicions", "fast: false failures per hour", "suspicions"}}
	for _, n := range []int{8, 32} {
		hours := o.hours * 8 / n
		for _, c := range conditions {
			row := []string{fmt.Sprint(n), c.name, fmt.Sprint(hours)}
			for _, mode := range []faultdetect.Mode{faultdetect.Gossip, faultdetect.Fast} {
				w, err := sim.New(n, faultdetect.Config{Period: period, Hang: c.hang, Mode: mode}, o.seed)
				if err != nil {
					return nil, err
				}
				w.RandomPhases()
				until := time.Duration(hours) * time.Hour
				c.make(w, until)
				w.Run(until)
				row = append(row, perHour(len(w.Failed), hours), perHour(w.Doubts, hours))
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func perHour(count, hours int) string {
	if count == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3g", float64(count)/float64(hours))
}
