package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are those of the command line.
type options struct {
	out    string
	worlds int
	most   int
	seed   uint64
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "finding:", err)
		return 64
	}
	if err := publish(o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "finding:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("finding", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.worlds, "worlds", 20, "`N` worlds of each kind")
	flags.IntVar(&o.most, "peers", 30_000, "worlds of at most `N` peers")
	flags.Uint64Var(&o.seed, "seed", 1, "`SEED` of the first world of each kind")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/networking.md and plots into DIR/networking, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.worlds < 1 || o.most < sizes[0] {
		return o, fmt.Errorf("usage: finding [OPTION]..., at least one world, of %d peers", sizes[0])
	}
	return o, nil
}

// publish measures, and writes tables and plots to where they are wanted.
func publish(o options, stdout, stderr io.Writer) error {
	growth := grow(o, stderr)
	for _, s := range []struct{ name, text string }{
		{"growth", growthTable(growth)},
		{"limits", limitsTable(limits(o, stderr))},
	} {
		s.text += fmt.Sprintf("\nMade with `-worlds %d -seed %d`.\n", o.worlds, o.seed)
		if o.out == "" {
			fmt.Fprintf(stdout, "## %s\n\n%s\n", s.name, s.text)
			continue
		}
		if err := markdown.Insert(filepath.Join(o.out, "networking.md"), "finding:"+s.name, s.text); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	return drawGrowth(growth, filepath.Join(o.out, "networking"))
}
