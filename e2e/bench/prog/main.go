package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

var profile = flag.String("profile", "", "`FILE` for a CPU profile of this rank")

func main() {
	flag.Parse()
	items, err := plan.ParseAll(flag.Args())
	if err == nil {
		err = join(items)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prog:", err)
		os.Exit(1)
	}
}

// join joins the job and runs this process's part of it.
func join(items []plan.Item) error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := measureAll(world.Comm, items, os.Stdout); err != nil {
		return err
	}
	return world.Finalize()
}

// measureAll prints the results of all items at rank 0.
func measureAll(c *mpj.Comm, items []plan.Item, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	aside, err := c.Dup()
	if err != nil {
		return err
	}
	for _, item := range items {
		result, err := measure(c, aside, item)
		if err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
		if c.Rank() == 0 {
			if err := out.Encode(result); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure measures an item on c. Measured values differ between replicas and are sent only on
// aside, so that the replicas' messages on c are equal.
func measure(c, aside *mpj.Comm, item plan.Item) (plan.Result, error) {
	result := plan.Result{Test: item.Test, Bytes: item.Bytes}
	if slices.Contains(plan.Kernels, item.Test) {
		return result, errors.New("a kernel is a program of its own")
	}
	if item.Test == plan.OverlapSend || item.Test == plan.OverlapRecv {
		part, seconds, err := overlap(c, item)
		result.Overlap, result.Seconds = &part, seconds
		return result, err
	}
	op, operations := collective(c, item), 1
	if op == nil {
		op, operations = pair(c, item)
	}
	seconds, err := plan.Median(item.Count, func(n int) (float64, error) { return timed(c, aside, n, op) })
	if err != nil {
		return result, err
	}
	result.Seconds = seconds / float64(operations)
	if item.Test == plan.Latency && item.Bytes <= plan.AllocationLimit {
		perOp, err := allocations(c, aside, item.Count, op)
		perMessage := perOp / float64(operations*max(c.Size()/2, 1)) // over all pairs
		result.Allocs = &perMessage
		return result, err
	}
	return result, nil
}
