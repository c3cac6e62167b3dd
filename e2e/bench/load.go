package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// sampling is how long the machine is watched before each run.
const sampling = 200 * time.Millisecond

// quiet is how busy others may be for a run to begin at once.
const quiet = 0.1

// settle waits until others are quiet, at most for a while, and returns how busy
// they are then.
func settle(ctx context.Context, atMost time.Duration) (part float64, ok bool) {
	for deadline := time.Now().Add(atMost); ; {
		part, ok = others(ctx)
		if !ok || part <= quiet || ctx.Err() != nil || !time.Now().Before(deadline) {
			return part, ok
		}
	}
}

// others returns which part of the processors was busy for a while with nothing of
// ours running: what figures have to be read with. Where the system does not tell,
// ok is false.
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

// processorTime is the first line of Linux's /proc/stat, summed up: user, nice,
// system, idle, iowait, … since the start.
func processorTime() (busy, all float64, ok bool) {
	stat, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	words := strings.Fields(line)
	if err != nil || len(words) < 9 {
		return 0, 0, false
	}
	for i, word := range words[1:9] { // what follows is in user and nice already
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
