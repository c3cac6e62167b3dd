package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: ring [ROUNDS], a whole number from 1 to 10^9")

// The default number of rounds, and the maximum.
const (
	defaultRounds = 100
	maxRounds     = 1_000_000_000
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
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout io.Writer) error {
	rounds, err := parse(args)
	if err != nil {
		return err
	}
	if err := mpj.Barrier(world.Comm); err != nil {
		return err
	}
	start := world.Wtime()
	token, err := pass(world.Comm, rounds)
	if err != nil || world.Rank() != 0 {
		return err
	}
	seconds := world.Wtime() - start
	if want := expected(world.Size(), rounds); token != want {
		return fmt.Errorf("the token is %d after %d rounds of %d ranks, not %d", token, rounds, world.Size(), want)
	}
	hops := rounds * world.Size()
	_, err = fmt.Fprintf(stdout, "ranks    %d\nrounds   %d\nhops     %d\ntoken    %d, as expected\ntime     %.3f seconds\nper hop  %.1f microseconds\n",
		world.Size(), rounds, hops, token, seconds, seconds*1e6/float64(hops))
	return err
}

// parse returns the number of rounds in the arguments.
func parse(args []string) (int, error) {
	if len(args) == 0 {
		return defaultRounds, nil
	}
	rounds, err := strconv.Atoi(args[0])
	if err != nil || len(args) > 1 || rounds < 1 || rounds > maxRounds {
		return 0, errUsage
	}
	return rounds, nil
}
