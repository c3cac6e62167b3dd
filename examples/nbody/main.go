package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: nbody [-bodies N] [-steps N] [-time T] [-seed N] [-csv FILE] [-png FILE]")

// exitUsage is the exit status for wrong arguments.
const exitUsage = 64

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, errUsage) {
		world.Abort(exitUsage, err.Error()) // ends the whole job, with one message
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nbody:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if world.Rank() != 0 {
		stderr = io.Discard
	}
	start := world.Wtime()
	r := newRing(world.Comm, o.bodies, o.seed)
	if err := r.forces(); err != nil {
		return err
	}
	before, err := r.energy()
	if err != nil {
		return err
	}
	if err := r.run(world, o.steps, o.time, progress(stderr, o.steps)); err != nil {
		return err
	}
	after, err := r.energy()
	if err != nil {
		return err
	}
	seconds := world.Wtime() - start
	bodies, velocities, err := r.gather()
	if err != nil || world.Rank() != 0 {
		return err
	}
	if err := o.write(bodies, velocities); err != nil {
		return err
	}
	pairs := float64(o.bodies) * float64(o.bodies-1) * float64(o.steps+1)
	_, err = fmt.Fprintf(stdout, "bodies   %d\nranks    %d\nsteps    %d of %v\nenergy   %.9f, then %.9f\ndrift    %.1e of it\ntime     %.3f seconds, %.1f million forces a second\n",
		o.bodies, world.Size(), o.steps, o.time, before, after, math.Abs((after-before)/before), seconds, pairs/seconds/1e6)
	return err
}

// progress returns a function that reports every tenth of the steps.
func progress(w io.Writer, steps int) func(step int) {
	return func(step int) {
		if step*10/steps > (step-1)*10/steps {
			fmt.Fprintf(w, "nbody: %d %% done\n", step*100/steps)
		}
	}
}

// options are the values of the arguments.
type options struct {
	bodies, steps int
	time          float64 // duration of a step
	seed          uint64
	csv, png      string
}

// write writes the files that the options name.
func (o options) write(bodies block, velocities []vector) error {
	if err := writeFile(o.csv, func(w io.Writer) error { return writeCSV(w, bodies, velocities) }); err != nil {
		return err
	}
	return writeFile(o.png, func(w io.Writer) error { return writePNG(w, bodies) })
}

// Limits of parse: bodies, and steps.
const (
	maxBodies = 1 << 24
	maxSteps  = 1_000_000_000
)

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("nbody", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	flags.IntVar(&o.bodies, "bodies", 1000, "bodies in both balls")
	flags.IntVar(&o.steps, "steps", 200, "steps")
	flags.Float64Var(&o.time, "time", 0.01, "duration of a step")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random numbers for the bodies")
	flags.StringVar(&o.csv, "csv", "", "file for positions and velocities")
	flags.StringVar(&o.png, "png", "", "file for a picture")
	switch err := flags.Parse(args); {
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case o.bodies < 2 || o.bodies > maxBodies:
		return o, fmt.Errorf("%w: want 2 to %d bodies, not %d", errUsage, maxBodies, o.bodies)
	case o.steps < 1 || o.steps > maxSteps:
		return o, fmt.Errorf("%w: want 1 to %d steps, not %d", errUsage, maxSteps, o.steps)
	case !(o.time > 0 && o.time <= 1):
		return o, fmt.Errorf("%w: the time of a step must be above 0 and at most 1, not %v", errUsage, o.time)
	}
	return o, nil
}
