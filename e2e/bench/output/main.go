package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() { command.Main() }

// called is the name of the command and of its section.
const called = "output"

var command = tool.Tool[options]{Name: called, Parse: parse, Work: bench}

// options are the values of the command line options.
type options struct {
	rounds    int
	megabytes int
	dir       string
	out       string
}

func parse(flags *flag.FlagSet, args []string) (options, error) {
	var o options
	flags.IntVar(&o.rounds, "rounds", 3, "measure `N` rounds")
	flags.IntVar(&o.megabytes, "mb", 300, "print `MB` megabytes of lines")
	flags.StringVar(&o.dir, "dir", "", "`DIR` for all files, on a fast file system")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/benchmarks.md, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// A method writes lines to a file. It returns a command that prints the given number of megabytes.
type method func(ctx context.Context, megabytes int) *exec.Cmd

// The methods, in the order of the table.
const (
	byCat    = "cat FILE"
	byLocal  = "p2prun --local 2 -n 1"
	byHome   = "p2prun -n 1, handed to a p2pboot"
	byCopies = "p2prun -n 1 -r 2, handed to a p2pboot"
)

var order = []string{byCat, byLocal, byHome, byCopies}

func bench(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.dir, "p2pmpi-output-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := grid.Build(ctx, dir, append(grid.Commands, "e2e/bench/output/lines")...); err != nil {
		return err
	}
	g, err := grid.BootApart(ctx, dir, dir, 2, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	byName, err := methods(ctx, g, dir, o.megabytes)
	if err != nil {
		return err
	}
	rates := make(map[string][]float64)
	for round := range o.rounds {
		names := slices.Sorted(maps.Keys(byName))
		rand.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		for _, name := range names {
			rate, err := measure(ctx, byName[name], filepath.Join(dir, "printed"), o.megabytes)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rates[name] = append(rates[name], rate)
			fmt.Fprintf(stderr, "output: round %d, %s: %.0f MB/s\n", round, name, rate)
		}
	}
	return tool.Publish([]tool.Section{{Name: "rate", Text: table(rates)}}, called, o.out, "benchmarks.md", stdout)
}

// methods returns the methods by name. The file that cat prints is in dir.
func methods(ctx context.Context, g *grid.Grid, dir string, megabytes int) (map[string]method, error) {
	lines, file := filepath.Join(dir, "lines"), filepath.Join(dir, "file")
	text, err := exec.CommandContext(ctx, lines, strconv.Itoa(megabytes)).Output()
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	run := func(args ...string) method {
		return func(ctx context.Context, megabytes int) *exec.Cmd {
			return g.Command(ctx, append(slices.Clone(args), lines, strconv.Itoa(megabytes))...)
		}
	}
	return map[string]method{
		byCat: func(ctx context.Context, megabytes int) *exec.Cmd {
			if megabytes == 0 {
				return exec.CommandContext(ctx, "cat", os.DevNull)
			}
			return exec.CommandContext(ctx, "cat", file)
		},
		byLocal: run("--local", "2", "-n", "1"), byHome: run("-n", "1"), byCopies: run("-n", "1", "-r", "2"),
	}, nil
}

// measure returns the throughput into a file in MB/s. It excludes the time to start and end.
func measure(ctx context.Context, run method, file string, megabytes int) (float64, error) {
	idle, err := timed(run(ctx, 0), file)
	if err != nil {
		return 0, err
	}
	took, err := timed(run(ctx, megabytes), file)
	if err != nil {
		return 0, err
	}
	if info, err := os.Stat(file); err != nil || info.Size() < int64(megabytes)*1e6 {
		return 0, errors.Join(err, errors.New("some of the output is missing"))
	}
	return float64(megabytes) / max(took-idle, time.Millisecond).Seconds(), nil
}

// timed runs a command with a new file as its output, and returns the time.
func timed(cmd *exec.Cmd, file string) (time.Duration, error) {
	os.Remove(file)
	out, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &said
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, &said)
	}
	return time.Since(begun), nil
}

// table returns a table with a row for each method.
func table(rates map[string][]float64) string {
	rows := [][]string{{"", "MB/s", "of cat's"}}
	for _, name := range order {
		var parts []float64
		for i, rate := range rates[name] {
			parts = append(parts, rate/rates[byCat][i])
		}
		rows = append(rows, []string{name, report.FigureOf(rates[name]).String(), report.FigureOf(parts).String()})
	}
	return markdown.Table(rows)
}
