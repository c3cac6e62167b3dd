package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// sampling is how long the load of the machine is sampled before each run.
const sampling = 200 * time.Millisecond

// quiet is the share of the processors up to which other work does not delay a run.
const quiet = 0.1

// settle waits until the load of other work is low, for at most atMost, and returns the last load.
func settle(ctx context.Context, atMost time.Duration) (part float64, ok bool) {
	for deadline := time.Now().Add(atMost); ; {
		part, ok = others(ctx)
		if !ok || part <= quiet || ctx.Err() != nil || !time.Now().Before(deadline) {
			return part, ok
		}
	}
}

// others returns the share of the processors that was busy while the benchmark ran nothing, which helps to
// interpret the figures. ok is false where the system does not report the load.
func others(ctx context.Context) (part float64, ok bool) {
	busy, all, ok := processorTime()
	if !ok {
		return 0, false
	}
	select {
	case <-ctx.Done():
	case <-time.After(sampling):
	}
	busyThen, allThen, ok := processorTime()
	if allThen == all {
		return 0, false
	}
	return (busyThen - busy) / (allThen - all), ok
}

// processorTime returns the sums over the first line of Linux's /proc/stat: user, nice, system,
// idle, iowait, … since the start.
func processorTime() (busy, all float64, ok bool) {
	stat, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	words := strings.Fields(line)
	if err != nil || len(words) < 9 {
		return 0, 0, false
	}
	for i, word := range words[1:9] { // the fields after these are included in user and nice
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return 0, 0, false
		}
		all += x
		if i != 3 && i != 4 {
			busy += x
		}
	}
	return busy, all, true
}
