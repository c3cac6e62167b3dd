package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: pi [INTERVALS], a whole number from 1 to 10^15")

// The default number of intervals, and the maximum, up to which every index is exact as a float64.
const (
	defaultIntervals = 10_000_000
	maxIntervals     = 1e15
)

// exitUsage is the exit status for wrong arguments.
const exitUsage = 64

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, errUsage) {
		world.Abort(exitUsage, err.Error()) // ends the whole job, with one message
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pi:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout io.Writer) error {
	// All ranks have the arguments, but only rank 0 parses them, as in a program that prompts its
	// user.
	intervals := make([]int, 1)
	if world.Rank() == 0 {
		var err error
		if intervals[0], err = parse(args); err != nil {
			return err
		}
	}
	if err := mpj.Bcast(world.Comm, intervals, 0); err != nil {
		return err
	}
	n := intervals[0]

	start := world.Wtime()
	from, to := share(n, world.Rank(), world.Size())
	pi := []float64{rectangles(from, to, n)}
	if err := mpj.Reduce(world.Comm, pi, pi, mpj.Sum, 0); err != nil {
		return err
	}
	if world.Rank() != 0 {
		return nil
	}
	_, err := fmt.Fprintf(stdout, "pi is about %.15f\nerror       %.1e\nintervals   %d\nranks       %d\ntime        %.3f seconds\n",
		pi[0], math.Abs(pi[0]-math.Pi), n, world.Size(), world.Wtime()-start)
	return err
}

// parse returns the number of intervals in the arguments.
func parse(args []string) (int, error) {
	if len(args) == 0 {
		return defaultIntervals, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || len(args) > 1 || n < 1 || float64(n) > maxIntervals {
		return 0, errUsage
	}
	return n, nil
}

// share returns the range of the n intervals that belongs to a rank: from is included, and to is
// not. The lengths of shares differ by at most one.
func share(n, rank, ranks int) (from, to int) {
	start := func(rank int) int { return rank*(n/ranks) + min(rank, n%ranks) }
	return start(rank), start(rank + 1)
}
