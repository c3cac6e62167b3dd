package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

var (
	pathName = flag.String("path", "tcp", "`PATH`: unix, tcp, tls, libp2p, libp2p-noise or libp2p-relay")
	asRelay  = flag.Bool("relay", false, "run as the relay of the path libp2p-relay")
	second   = flag.String("second", "", "run as the second process and connect to `ADDRESS`")
)

func main() {
	flag.Parse()
	ctx, cancel := context.WithCancel(context.Background()) // its end also ends the relay
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "raw:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *asRelay {
		return serveRelay(ctx)
	}
	path, ok := paths[*pathName]
	if !ok {
		return fmt.Errorf("unknown path %q", *pathName)
	}
	items, err := plan.ParseAll(flag.Args())
	if err != nil {
		return err
	}
	if *second == "" {
		return first(ctx, path, items)
	}
	conn, err := path.dial(ctx, *second)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", *second, err)
	}
	defer conn.Close()
	e := &end{conn: conn}
	if err := measureAll(e, items, io.Discard); err != nil {
		return err
	}
	return e.part()
}

// first starts the second process and prints the measurements.
func first(ctx context.Context, path path, items []plan.Item) error {
	address, accept, err := path.listen(ctx)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, append([]string{"-path", *pathName, "-second", address}, flag.Args()...)...)
	child.Stderr = os.Stderr
	grid.EndWithParent(child)
	if err := child.Start(); err != nil {
		return err
	}
	conn, err := accept()
	if err != nil {
		return err
	}
	e := &end{conn: conn, first: true}
	if err := measureAll(e, items, os.Stdout); err != nil {
		return err
	}
	if err := e.part(); err != nil {
		return err
	}
	conn.Close()
	return child.Wait()
}

// measureAll prints the results of all items.
func measureAll(e *end, items []plan.Item, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	for _, item := range items {
		op, operations, err := e.operation(item)
		if err != nil {
			return err
		}
		seconds, err := plan.Median(item.Count, func(n int) (float64, error) { return timed(n, op) })
		if err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
		result := plan.Result{Test: item.Test, Bytes: item.Bytes, Seconds: seconds / float64(operations)}
		if item.Test == plan.Latency && item.Bytes <= plan.AllocationLimit {
			perTrip, err := plan.Allocations(item.Count, op)
			if err != nil {
				return fmt.Errorf("%s: %w", item, err)
			}
			result.Allocs = &perTrip // one message sent and one received here, and as many at the other end
		}
		if err := out.Encode(result); err != nil {
			return err
		}
	}
	return nil
}

func timed(n int, op func() error) (float64, error) {
	start := time.Now()
	for range n {
		if err := op(); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds(), nil
}
