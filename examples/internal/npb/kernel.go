package npb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A Kernel is one of the benchmarks.
type Kernel struct {
	Name       string   // name of the program: "cg"
	Classes    []string // the first is the default
	Sequential bool     // Run also works without a world, for -sequential

	// Run computes a class. It returns at all ranks, and only the Result of rank 0 is used.
	Run func(*Run) (Result, error)
}

// errVerification is the error of rank 0 for a wrong result.
var errVerification = errors.New("the result differs from NPB's")

// exitUsage is the exit status for wrong arguments.
const exitUsage = 64

// Main is the body of the program's main function. It exits with status 0 when the result is
// correct, 1 when it is wrong or an error occurred, and 64 for wrong usage.
func (k Kernel) Main() {
	o, err := k.parse(os.Args[1:])
	if err == nil && o.sequential {
		k.exit(k.execute(nil, o, os.Stdout, os.Stderr))
	}
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = k.Execute(world, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, ErrUsage) {
		world.Abort(exitUsage, k.Name+": "+err.Error()) // ends the whole job, with one message
	}
	k.exit(err)
}

// exit ends this process; its replicas continue if they can.
func (k Kernel) exit(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", k.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Execute runs k with args as one rank of world, like Main, but does not exit the process. The error
// wraps ErrUsage if the user can correct the mistake.
func (k Kernel) Execute(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	o, err := k.parse(args)
	if err != nil {
		return err
	}
	return k.execute(world, o, stdout, stderr)
}

// execute runs k in world, or without a world if world is nil, and reports at rank 0.
func (k Kernel) execute(world *mpj.World, o options, stdout, stderr io.Writer) error {
	r := &Run{World: world, Class: o.class, Progress: stderr, clock: newClock(world, o.times)}
	if r.Rank() != 0 {
		r.Progress = io.Discard
	}
	result, err := k.Run(r)
	if err != nil || r.Rank() != 0 {
		return err
	}
	if err := k.report(stdout, r, result); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !result.Verified {
		return errVerification
	}
	return nil
}
