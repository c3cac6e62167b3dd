package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() { command.Main() }

// called is the name of the command and of its sections.
const called = "finding"

var command = tool.Tool[options]{Name: called, Parse: parse, Work: publish}

// options are the values of the command line options.
type options struct {
	out    string
	worlds int
	most   int
	seed   uint64
}

func parse(flags *flag.FlagSet, args []string) (options, error) {
	var o options
	flags.IntVar(&o.worlds, "worlds", 20, "simulate `N` worlds of each kind")
	flags.IntVar(&o.most, "peers", 30_000, "simulate worlds of at most `N` peers")
	flags.Uint64Var(&o.seed, "seed", 1, "`SEED` of the first world of each kind")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/networking.md and plots into DIR/networking, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.worlds < 1 || o.most < sizes[0] {
		return o, fmt.Errorf("usage: finding [OPTION]..., with at least one world and at least %d peers", sizes[0])
	}
	return o, nil
}

// publish measures, and writes tables and plots to the documentation or to standard output.
func publish(ctx context.Context, o options, stdout, stderr io.Writer) error {
	growth, others := grow(ctx, o, stderr), limits(ctx, o, stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	made := fmt.Sprintf("\nMade with `-worlds %d -seed %d`.\n", o.worlds, o.seed)
	all := []tool.Section{
		{Name: "growth", Text: growthTable(growth) + made},
		{Name: "limits", Text: limitsTable(others) + made},
	}
	if err := tool.Publish(all, called, o.out, "networking.md", stdout); err != nil || o.out == "" {
		return err
	}
	return drawGrowth(growth, filepath.Join(o.out, "networking"))
}
