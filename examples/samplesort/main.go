package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	errUsage = errors.New("usage: samplesort [-integers] [-out FILE] [-parts] FILE")
	errInput = errors.New("samplesort")                   // an error in the file
	errWrong = errors.New("internal error of samplesort") // an internal error, which no input should cause
)

// Exit statuses: wrong arguments, or an error in the file.
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
		fmt.Fprintln(os.Stderr, "samplesort:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	lines, err := readPart(world.Comm, o)
	if err != nil {
		return err
	}
	before, err := sumAll(world.Comm, lines)
	if err != nil {
		return err
	}
	start := world.Wtime()
	if lines, err = sortAll(world.Comm, o, lines); err != nil {
		return err
	}
	seconds := world.Wtime() - start
	if err := verify(world.Comm, o, lines); err != nil {
		return err
	}
	after, err := sumAll(world.Comm, lines)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("%w: read %v, wrote %v", errWrong, before, after)
	}
	if err := write(world.Comm, o, lines); err != nil {
		return err
	}
	return report(world.Comm, stdout, after, len(lines), seconds)
}

// report prints a summary at rank 0. mine is the final number of lines of this rank.
func report(c *mpj.Comm, w io.Writer, s sum, mine int, seconds float64) error {
	counts := make([]int, c.Size())
	if err := mpj.Gather(c, []int{mine}, counts, 0); err != nil || c.Rank() != 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "lines     %d\nbytes     %d\nchecksum  %016x, before and after\nranks     %d, with %d to %d lines\ntime      %.3f seconds\n",
		s.lines, s.bytes, s.check, c.Size(), slices.Min(counts), slices.Max(counts), seconds)
	return err
}

// options are the values of the arguments.
type options struct {
	integers, parts bool
	out, file       string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("samplesort", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	flags.BoolVar(&o.integers, "integers", false, "sort lines that are whole numbers by value")
	flags.BoolVar(&o.parts, "parts", false, "write one file per rank")
	flags.StringVar(&o.out, "out", "sorted.txt", "file to write")
	switch err := flags.Parse(args); {
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() != 1:
		return o, fmt.Errorf("%w: want one file, not %d", errUsage, flags.NArg())
	case o.out == "":
		return o, fmt.Errorf("%w: missing name of the output file", errUsage)
	}
	o.file = flags.Arg(0)
	return o, nil
}
