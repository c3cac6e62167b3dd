package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/lifetime"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() { command.Main() }

// called is the name of the command and of its sections.
const called = "lifetime"

var command = tool.Tool[options]{Name: called, Parse: parse, Work: publish}

// options are the values of the command line options.
type options struct {
	out    string
	sample int
	most   int
	seed   uint64
}

func parse(flags *flag.FlagSet, args []string) (options, error) {
	var o options
	flags.IntVar(&o.sample, "sample", 2000, "draw `N` sets of crashes of each size with too many sets to enumerate")
	flags.IntVar(&o.most, "members", lifetime.MaxMembers, "compute groups of at most `N` members")
	flags.Uint64Var(&o.seed, "seed", 1, "`SEED` of the samples")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/reliability.md and plots into DIR/reliability, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.sample < 1 || o.most < 4 || o.most > lifetime.MaxMembers {
		return o, fmt.Errorf("usage: lifetime [OPTION]..., with at least one sample and 4 to %d members", lifetime.MaxMembers)
	}
	return o, nil
}

// publish computes, and writes tables and plots to the documentation or to standard output.
func publish(ctx context.Context, o options, stdout, stderr io.Writer) error {
	effort := lifetime.Effort{Enumerate: 1 << 16, Sample: o.sample, Rand: rand.New(rand.NewPCG(o.seed, 0))}
	r := compute(ctx, effort, o.most, stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	all := r.sections()
	for i, s := range all {
		if s.Name != "fewest" && o.out != "" { // that section is exact, without samples
			all[i].Text += fmt.Sprintf("\nMade with `-sample %d -seed %d`.\n", o.sample, o.seed)
		}
	}
	if err := tool.Publish(all, called, o.out, "reliability.md", stdout); err != nil || o.out == "" {
		return err
	}
	return r.draw(filepath.Join(o.out, "reliability"))
}
