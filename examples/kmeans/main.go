package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	errUsage = errors.New("usage: kmeans -k CLUSTERS [-columns NAME,...] [-seed N] [-steps N] FILE")
	errInput = errors.New("kmeans") // an error in the data
)

// Exit statuses: wrong arguments, or an error in the data.
const (
	exitUsage = 64
	exitInput = 1
)

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout)
	}
	if err == nil {
		err = world.Finalize()
	}
	switch { // Abort ends the whole job, with one message
	case errors.Is(err, errUsage):
		world.Abort(exitUsage, err.Error())
	case errors.Is(err, errInput):
		world.Abort(exitInput, err.Error())
	case err != nil:
		fmt.Fprintln(os.Stderr, "kmeans:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	d, mine, err := distribute(world.Comm, o)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	centroids, err := seed(world.Comm, mine, o.k, random)
	if err != nil {
		return err
	}
	result, err := cluster(world.Comm, mine, centroids, o.steps)
	if err != nil || world.Rank() != 0 {
		return err
	}
	return result.print(stdout, d.Names, world.Size())
}

// options are the values of the arguments.
type options struct {
	k, steps      int
	seed          uint64
	columns, file string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("kmeans", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	flags.IntVar(&o.k, "k", 0, "clusters")
	flags.StringVar(&o.columns, "columns", "", "columns that make up a point")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random numbers for the first centroids")
	flags.IntVar(&o.steps, "steps", 1000, "maximum number of steps")
	switch err := flags.Parse(args); {
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case o.k < 1 || o.steps < 1:
		return o, fmt.Errorf("%w: clusters and steps must be at least 1", errUsage)
	case flags.NArg() != 1:
		return o, fmt.Errorf("%w: want one file, not %d", errUsage, flags.NArg())
	}
	o.file = flags.Arg(0)
	return o, nil
}

// A dataset is the information about the file that every rank has.
type dataset struct {
	Names  []string // names of the coordinates
	Points int
}

// distribute reads the file at rank 0 and sends every rank its share of the points.
func distribute(c *mpj.Comm, o options) (d dataset, mine points, err error) {
	var all points
	if c.Rank() == 0 {
		if d.Names, all, err = readFile(o.file, o.columns); err != nil {
			return d, mine, err
		}
		if d.Points = all.count(); o.k > d.Points {
			return d, mine, fmt.Errorf("%w: %d clusters, but only %d points in %s", errInput, o.k, d.Points, o.file)
		}
	}
	if d, err = mpj.BcastValue(c, d, 0); err != nil {
		return d, mine, err
	}
	counts := make([]int, c.Size())
	for rank := range counts {
		from, to := share(d.Points, rank, c.Size())
		counts[rank] = (to - from) * len(d.Names)
	}
	mine = points{len(d.Names), make([]float64, counts[c.Rank()])}
	return d, mine, mpj.Scatterv(c, all.coords, counts, nil, mine.coords, 0)
}
