package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == spinning {
		spin()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are those of the command line.
type options struct {
	rounds int
	starve time.Duration
	seed   uint64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "owner:", err)
		return 64
	}
	if err := bench(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "owner:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("owner", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 1, "`N` rounds")
	flags.DurationVar(&o.starve, "starve", 30*time.Second, "`TIME` for which the owner needs all processors in the end; 0 to leave that out")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "`SEED` of the order within rounds")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.rounds < 0 {
		return o, errors.New("usage: owner [OPTION]..., and no less than 0 rounds")
	}
	return o, nil
}

func bench(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "p2pmpi-owner-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := openSite(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.grid.Close()) }()
	all := make(results)
	random := rand.New(rand.NewPCG(o.seed, 0))
	for round := range o.rounds {
		for _, i := range random.Perm(len(ways)) {
			took, err := s.during(ctx, ways[i])
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
			fmt.Fprintf(stderr, "owner: round %d/%d  %-10s %6.2f s\n", round+1, o.rounds, ways[i].name, took.Seconds())
			all[ways[i].name] = append(all[ways[i].name], took.Seconds())
		}
	}
	for _, each := range []int{1, 4} {
		if o.starve == 0 {
			break
		}
		part, err := s.starve(ctx, each*runtime.NumCPU(), o.starve)
		if err != nil {
			return fmt.Errorf("a job that gets no processor: %w", err)
		}
		fmt.Fprintf(stderr, "owner: beside %d processes for each processor, for %v, a job went on with %.1f %% of the time\n", each, o.starve, 100*part)
	}
	if o.rounds > 0 {
		_, err = io.WriteString(stdout, all.table())
	}
	return err
}
