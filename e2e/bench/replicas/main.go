package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() { command.Main() }

// called is the name of the command and of its sections.
const called = "replicas"

var command = tool.Tool[options]{Name: called, Parse: parse, Work: bench}

// options are the values of the command line options.
type options struct {
	length  time.Duration
	samples string
	seed    uint64
	only    *regexp.Regexp
	out     string
}

func parse(flags *flag.FlagSet, args []string) (options, error) {
	var o options
	var only string
	flags.DurationVar(&o.length, "for", time.Minute, "begin no measurement after `TIME`; 0 measures nothing")
	flags.StringVar(&o.samples, "samples", "", "`FILE` of samples, one per line: new samples are appended, and existing ones are included in the tables")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "`SEED` of the order within rounds")
	flags.StringVar(&only, "only", "", "run only measurements that match `REGEXP`: cost, takeover")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/benchmarks.md, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	o.only, err = regexp.Compile(only)
	return o, err
}

func bench(ctx context.Context, o options, stdout, stderr io.Writer) error {
	all, err := read(o.samples)
	if err != nil {
		return err
	}
	if o.length > 0 {
		taken, err := measure(ctx, o, rounds(all), stderr)
		if err := write(o.samples, taken); err != nil {
			return err
		}
		if all = append(all, taken...); err != nil {
			return err
		}
	}
	return tool.Publish([]tool.Section{{Name: "cost", Text: costTable(all)}, {Name: "takeover", Text: takeoverTable(all)}},
		called, o.out, "benchmarks.md", stdout)
}

// peers is enough for two replicas of four ranks, or of beat's five.
const peers = 10

// measure takes samples until the time is over. Each round measures the cost once, and then kills masters for
// about the same time.
func measure(ctx context.Context, o options, round int, stderr io.Writer) (taken []sample, err error) {
	dir, err := os.MkdirTemp("", "p2pmpi-replicas-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	packages := append(grid.Commands, "e2e/bench/prog", "e2e/bench/beat")
	for _, program := range []string{"ep", "is", "heat"} {
		packages = append(packages, "examples/"+program)
	}
	if err := grid.Build(ctx, dir, packages...); err != nil {
		return nil, err
	}
	begun := time.Now()
	g, err := grid.BootApart(ctx, dir, dir, peers, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	field := &field{dir: dir, grid: g, random: rand.New(rand.NewPCG(o.seed, uint64(round)))}
	for ; time.Since(begun) < o.length; round++ {
		for name, of := range map[string]func(context.Context) ([]sample, error){"cost": field.cost, "takeover": field.takeovers} {
			if !o.only.MatchString(name) || time.Since(begun) >= o.length {
				continue
			}
			samples, err := of(ctx)
			for i := range samples {
				samples[i].Round = round
			}
			taken = append(taken, samples...)
			fmt.Fprintf(stderr, "replicas: round %d, %s: %d samples, after %v\n", round, name, len(samples), time.Since(begun).Round(time.Second))
			if err != nil {
				return taken, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return taken, nil
}

// A field holds the programs and peers of the measurements.
type field struct {
	dir    string // directory of the programs
	grid   *grid.Grid
	random *rand.Rand
}

func (f *field) built(program string) string { return filepath.Join(f.dir, program) }
