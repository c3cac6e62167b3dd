package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// A trial produces one figure of a table.
type trial struct {
	table, row string
	program    program
	measure    func(context.Context, *workshop, program) (seconds float64, err error)
}

// The tables, by name.
const (
	start   = "Start"
	message = "Message"
)

// ping is the program that sends messages.
const ping = "ping"

// kernels are the programs that compute, with the class for a run and for a quick look. A native
// program takes about a second.
var kernels = []struct{ name, class, quick string }{
	{"ep", "W", "S"}, {"is", "A", "S"}, {"cg", "A", "S"}, {"heat", "", ""},
}

func trials(quick bool) (all []trial) {
	for _, k := range kernels {
		var args []string
		if k.class != "" {
			args = []string{k.class}
		}
		if k.class != "" && quick {
			args = []string{k.quick}
		}
		for _, form := range []program{{}, {engine: "wazero"}, {engine: "wazero", simd: true}, {engine: "wasmtime"}, {engine: "wasmtime", simd: true}} {
			form.name, form.language = k.name, inC
			all = append(all, trial{inC, k.name, form, computes(0, args...)})
		}
		for _, engine := range []string{"", "wazero", "wasmtime"} {
			all = append(all, trial{inGo, k.name, program{name: k.name, language: inGo, engine: engine}, computes(1, args...)})
		}
	}
	trips := "20000"
	if quick {
		trips = "1000"
	}
	for _, engine := range []string{"", runner, fastRunner} {
		all = append(all, trial{message, "half a round trip", program{name: ping, language: inGo, engine: engine}, computes(2, trips)})
	}
	for _, p := range []program{{name: "empty", language: inC}, {name: ping, language: inGo}} {
		for _, engine := range []string{"", "wazero", "wasmtime"} {
			p.engine = engine
			all = append(all, trial{start, "start and end a program in " + p.language, p, starts})
			if engine != "" {
				all = append(all, trial{start, "compile a program in " + p.language, p, compiles})
			}
		}
	}
	return all
}

// computes returns a measurement that runs a program and parses its report. A program in Go runs as
// a job with the given number of ranks.
func computes(ranks int, args ...string) func(context.Context, *workshop, program) (float64, error) {
	return func(ctx context.Context, w *workshop, p program) (float64, error) {
		out, err := p.run(ctx, w, ranks, args...)
		if err != nil {
			return 0, err
		}
		return reported(out)
	}
}

func compiles(ctx context.Context, w *workshop, p program) (float64, error) {
	return p.recompile(ctx, w)
}

func starts(ctx context.Context, w *workshop, p program) (float64, error) { return p.start(ctx, w) }

// The formats of reports: a line of name=value pairs, or text.
var (
	verified = regexp.MustCompile(`verified=yes|Verification *= SUCCESSFUL|(?s:steps[ =]+8330\b.*centre[ =]+21\.70)`)
	seconds  = regexp.MustCompile(`(?:seconds=|Time +.*= |time +)([0-9.]+)`)
)

// reported returns the time in a program's report.
func reported(out []byte) (float64, error) {
	match := seconds.FindSubmatch(out)
	if match == nil || !verified.Match(out) {
		return 0, fmt.Errorf("the result was not verified:\n%s", out)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
