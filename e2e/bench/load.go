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
