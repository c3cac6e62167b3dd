package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// The classes of the NAS kernels.
const (
	nasClass      = "A"
	nasQuickClass = "S"
)

// ourKernels runs the programs of examples as jobs of n ranks.
func ourKernels(n int, options ...string) runner {
	return kernels(func(ctx context.Context, w *workshop, kernel string) ([]byte, error) {
		args := append([]string{"-n", strconv.Itoa(n), "--timeout", perRun.String()}, options...)
		return w.grid.Run(ctx, w.dir, append(args, w.built(kernel), "-times", w.class)...)
	})
}

// openMPIKernels runs the C programs with Open MPI.
func openMPIKernels(n int, options ...string) runner {
	return kernels(func(ctx context.Context, w *workshop, kernel string) ([]byte, error) {
		return mpirunOpenMPI(ctx, n, options, w.built(kernel+".openmpi"), w.class)
	})
}

// mpichKernels runs the C programs with MPICH.
func mpichKernels(n int, env ...string) runner {
	return kernels(func(ctx context.Context, w *workshop, kernel string) ([]byte, error) {
		return mpirunMPICH(ctx, n, env, w.built(kernel+".mpich"), w.class)
	})
}

// alone runs n processes of the sequential program at a time, each of which does the whole work. A
// job of n ranks should need the n-th part of the longest time, so alone reports that.
func alone(n int) runner {
	return kernels(func(ctx context.Context, w *workshop, kernel string) ([]byte, error) {
		outs, errs := make([][]byte, n), make([]error, n)
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() { outs[i], errs[i] = guest(ctx, nil, w.built(kernel), "-sequential", w.class) })
		}
		group.Wait()
		longest := 0.0
		for i := range n {
			if errs[i] != nil {
				return nil, errs[i]
			}
			seconds, err := field(outs[i], "seconds")
			if err != nil {
				return nil, err
			}
			longest = max(longest, seconds)
		}
		return fmt.Appendf(nil, "seconds=%f messages=0 computing=%f verified=yes", longest/float64(n), longest/float64(n)), nil
	})
}

// kernels returns a runner for a function that runs one kernel and returns its report, in the
// format of the Go or the C programs.
func kernels(one func(ctx context.Context, w *workshop, kernel string) ([]byte, error)) runner {
	return func(ctx context.Context, w *workshop, items []string) ([]byte, error) {
		var lines []byte
		for _, word := range items {
			item, err := plan.Parse(word)
			if err != nil {
				return lines, err
			}
			out, err := one(ctx, w, item.Test)
			if err != nil {
				return lines, fmt.Errorf("%s: %w", item.Test, err)
			}
			result, err := kernelResult(item.Test, out)
			if err != nil {
				return lines, fmt.Errorf("%s: %w", item.Test, err)
			}
			line, err := json.Marshal(result)
			if err != nil {
				return lines, err
			}
			lines = append(append(lines, line...), '\n')
		}
		return lines, nil
	}
}

// kernelResult parses the report of a kernel.
func kernelResult(kernel string, out []byte) (plan.Result, error) {
	result := plan.Result{Test: kernel}
	if !verified.Match(out) {
		return result, fmt.Errorf("the result was not verified:\n%s", out)
	}
	var err error
	if result.Seconds, err = field(out, "seconds"); err != nil {
		return result, err
	}
	messages, err := field(out, "messages")
	if err != nil {
		return result, err
	}
	computing, err := field(out, "computing")
	result.Messages, result.Computing = &messages, &computing
	return result, err
}

// The fields of a report, in the formats of the C and the Go programs.
var (
	verified = regexp.MustCompile(`verified=yes|Verification *= SUCCESSFUL`)
	reported = map[string]*regexp.Regexp{
		"seconds":   regexp.MustCompile(`(?:seconds=|Time +.*= )([0-9.]+)`),
		"messages":  regexp.MustCompile(`(?:messages=|Messages +.*= )([0-9.]+)`),
		"computing": regexp.MustCompile(`(?:computing=|Computing +.*= )([0-9.]+)`),
	}
)

func field(out []byte, name string) (float64, error) {
	match := reported[name].FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("the report has no field %s:\n%s", name, out)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
