package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// A subject is a program whose time is measured.
type subject struct {
	n       int
	program string
	args    []string
	read    func(out []byte) ([]sample, error)
}

var subjects = []subject{
	{2, "prog", []string{"latency:1:2000", "latency:65536:400", "latency:1048576:60"}, operations},
	{4, "prog", []string{"alltoall:1024:500", "alltoall:65536:150"}, operations},
	{2, "ep", []string{"-class", "W", "-times"}, total(epTest)},
	{2, "is", []string{"-class", "A", "-times"}, total(isTest)},
	{4, "heat", []string{"-side", "255", "-tolerance", "0", "-steps", "1000"}, total(heatTest)},
}

// Descriptions of the programs that are measured as a whole.
const (
	epTest   = "EP, class W"
	isTest   = "IS, class A"
	heatTest = "halo exchange: heat, 255 × 255 points, 1000 steps"
)

// The ways to run a subject. One job with r=2 and two jobs with r=1 do the same computation on the same
// processors. The additional time of r=2 is the cost of keeping the replicas consistent.
const (
	once    = "r=1"
	twice   = "two jobs, r=1"
	doubled = "r=2"
)

// A turn is a subject with a way to run it.
type turn struct {
	subject
	way string
}

// cost runs each subject in each way, in random order.
func (f *field) cost(ctx context.Context) (all []sample, err error) {
	var turns []turn
	for _, s := range subjects {
		for _, way := range []string{once, twice, doubled} {
			turns = append(turns, turn{s, way})
		}
	}
	f.random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for _, t := range turns {
		samples, err := f.take(ctx, t)
		if err != nil {
			return all, fmt.Errorf("%s, n=%d, %s: %w", t.program, t.n, t.way, err)
		}
		for _, s := range samples {
			s.N, s.Way = t.n, t.way
			all = append(all, s)
		}
	}
	return all, nil
}

// take runs a turn. For two concurrent jobs, a sample is the mean of both.
func (f *field) take(ctx context.Context, t turn) ([]sample, error) {
	switch t.way {
	case once:
		return f.job(ctx, t.subject, "1")
	case doubled:
		return f.job(ctx, t.subject, "2")
	}
	var both [2][]sample
	var errs [2]error
	var jobs sync.WaitGroup
	for i := range both {
		jobs.Go(func() { both[i], errs[i] = f.job(ctx, t.subject, "1") })
	}
	jobs.Wait()
	for i := range errs {
		if errs[i] != nil {
			return nil, errs[i]
		}
	}
	for i := range both[0] {
		both[0][i].Seconds = (both[0][i].Seconds + both[1][i].Seconds) / 2
	}
	return both[0], nil
}

// job runs a subject as one job in which no two processes share a peer.
func (f *field) job(ctx context.Context, s subject, replicas string) ([]sample, error) {
	args := []string{"-n", strconv.Itoa(s.n), "-r", replicas, "-a", "spread", "--channels", "tcp", "--timeout", "60s"}
	if replicas != "1" && s.program == "prog" {
		args = append(args, "--on-divergence", "warn") // replicas send and print different times
	}
	out, err := f.grid.Run(ctx, f.dir, append(append(args, f.built(s.program)), s.args...)...)
	if err != nil {
		return nil, err
	}
	return s.read(out)
}

// operations parses the output of prog, a line for each item.
func operations(out []byte) (all []sample, err error) {
	lines := json.NewDecoder(bytes.NewReader(out))
	for lines.More() {
		var r plan.Result
		if err := lines.Decode(&r); err != nil {
			return all, fmt.Errorf("read %q: %w", out, err)
		}
		all = append(all, sample{Test: r.Test, Bytes: r.Bytes, Seconds: r.Seconds})
	}
	return all, nil
}

var seconds = regexp.MustCompile(`(?i)\btime +(?:= *)?([0-9.]+) seconds`)

// total parses the report of a program that is measured as a whole.
func total(test string) func([]byte) ([]sample, error) {
	return func(out []byte) ([]sample, error) {
		match := seconds.FindSubmatch(out)
		if match == nil {
			return nil, fmt.Errorf("no time in the report:\n%s", out)
		}
		s, err := strconv.ParseFloat(string(match[1]), 64)
		return []sample{{Test: test, Seconds: s}}, err
	}
}
