package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/faultdetect/lifetime"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are those of the command line.
type options struct {
	out    string
	sample int
	most   int
	seed   uint64
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "lifetime:", err)
		return 64
	}
	effort := lifetime.Effort{Enumerate: 1 << 16, Sample: o.sample, Rand: rand.New(rand.NewPCG(o.seed, 0))}
	if err := publish(compute(effort, o.most, stderr), o, stdout); err != nil {
		fmt.Fprintln(stderr, "lifetime:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("lifetime", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.sample, "sample", 2000, "`N` sets of crashes of each size that has too many to try all")
	flags.IntVar(&o.most, "members", lifetime.MaxMembers, "groups of at most `N` members")
	flags.Uint64Var(&o.seed, "seed", 1, "`SEED` of the samples")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/reliability.md and plots into DIR/reliability, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.sample < 1 || o.most < 4 || o.most > lifetime.MaxMembers {
		return o, fmt.Errorf("usage: lifetime [OPTION]..., at least one sample, 4 to %d members", lifetime.MaxMembers)
	}
	return o, nil
}

// publish writes tables and plots to where they are wanted.
func publish(r results, o options, stdout io.Writer) error {
	for _, s := range r.sections() {
		if o.out == "" {
			fmt.Fprintf(stdout, "## %s\n\n%s\n", s.name, s.text)
			continue
		}
		if s.name != "fewest" { // which is exact
			s.text += fmt.Sprintf("\nMade with `-sample %d -seed %d`.\n", o.sample, o.seed)
		}
		if err := markdown.Insert(filepath.Join(o.out, "reliability.md"), "lifetime:"+s.name, s.text); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	return r.draw(filepath.Join(o.out, "reliability"))
}
