package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: heat [-side POINTS] [-tolerance DEGREES] [-steps N] [-png FILE]")

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
		fmt.Fprintln(os.Stderr, "heat:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	g, err := newGrid(world.Comm, o.side)
	if err != nil {
		return err
	}
	if g.Rank() != 0 {
		stderr = io.Discard
	}
	start := world.Wtime()
	s, err := g.solve(o.tolerance, o.steps, progress(stderr))
	if err != nil {
		return err
	}
	seconds := world.Wtime() - start
	plate, err := g.gather(s.block)
	if err != nil || g.Rank() != 0 {
		return err
	}
	if err := write(o.png, picture(plate, o.side)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "picture  %s, %d x %d\nranks    %d x %d\nsteps    %d, the last one of at most %.3g degrees\ncentre   %.2f degrees\ntime     %.3f seconds\n",
		o.png, o.side, o.side, g.dims[0], g.dims[1], s.steps, s.change, plate[len(plate)/2], seconds)
	return err
}

// progress returns a function that reports whenever the change per step has fallen by a factor of
// ten.
func progress(w io.Writer) func(step int, change float64) {
	next := 1.0
	return func(step int, change float64) {
		if change <= next {
			fmt.Fprintf(w, "heat: %d steps, the last one of at most %.3g degrees\n", step, change)
		}
		for change > 0 && change <= next {
			next /= 10
		}
	}
}

// options are the values of the arguments.
type options struct {
	side, steps int
	tolerance   float64
	png         string
}

// maxSide bounds the side of the plate, because rank 0 keeps the whole plate in memory.
const maxSide = 1 << 13

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("heat", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	flags.IntVar(&o.side, "side", 127, "points in each direction")
	flags.Float64Var(&o.tolerance, "tolerance", 1e-3, "stop when no temperature changes by more than this in a step, in degrees")
	flags.IntVar(&o.steps, "steps", 1_000_000, "maximum number of steps")
	flags.StringVar(&o.png, "png", "heat.png", "file to write")
	switch err := flags.Parse(args); {
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case o.side < 1 || o.side > maxSide:
		return o, fmt.Errorf("%w: want 1 to %d points in each direction, not %d", errUsage, maxSide, o.side)
	case !(o.tolerance >= 0) || o.steps < 1:
		return o, fmt.Errorf("%w: the tolerance must not be negative, and steps must be at least 1", errUsage)
	case o.png == "":
		return o, fmt.Errorf("%w: missing file name for the picture", errUsage)
	}
	return o, nil
}
