package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() { command.Main() }

// called is the name of the command and of its sections.
const called = "bench"

var command = tool.Tool[options]{Name: called, Parse: parse, Work: bench}

// options are the values of the command line options.
type options struct {
	quick   bool
	only    *regexp.Regexp
	rounds  int
	seed    uint64
	out     string
	profile string
	wait    time.Duration
}

func parse(flags *flag.FlagSet, args []string) (options, error) {
	var o options
	var only string
	flags.BoolVar(&o.quick, "quick", false, "measure a few sizes, with few operations")
	flags.StringVar(&only, "only", "", "run only tests that match `REGEXP`, with names such as \"mpj stream n=2/latency\"")
	flags.IntVar(&o.rounds, "rounds", 3, "`N` rounds")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "`SEED` of the order within rounds")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/benchmarks.md and plots into DIR/benchmarks, not to standard output")
	flags.DurationVar(&o.wait, "wait", 0, "before each run, wait at most `TIME` until other programs leave the processors idle")
	flags.StringVar(&o.profile, "profile", "", "collect CPU profiles of our ranks under `DIR`, which slows them down")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.rounds < 1 {
		return o, errors.New("usage: bench [OPTION]..., with at least one round")
	}
	var err error
	o.only, err = regexp.Compile(only)
	return o, err
}

func bench(ctx context.Context, o options, stdout, stderr io.Writer) error {
	field := present(contenders(), o, stderr)
	if len(field) == 0 {
		return errors.New("no installed contender matches -only")
	}
	if o.profile != "" {
		dir, err := filepath.Abs(o.profile)
		if err != nil {
			return err
		}
		o.profile = dir
	}
	w, err := openWorkshop(ctx, field, o)
	if err != nil {
		return err
	}
	defer w.close()
	fmt.Fprintf(stderr, "bench: %d contenders, %d rounds, seed %d\n", len(field), o.rounds, o.seed)
	when := note(ctx, o)
	results, load := measure(ctx, w, field, o, stderr)
	when.took, when.load = time.Since(when.begin), report.FigureOf(load)
	if err := context.Cause(ctx); err != nil && results.Rounds() == 0 {
		return err
	}
	when.rounds = results.Rounds() // for an interrupted run, the rounds that were done
	return publish(results, o, when, stdout)
}

// present returns the contenders that are selected and installed.
func present(all []contender, o options, stderr io.Writer) []contender {
	var field []contender
	for _, c := range all {
		if len(wanted(c, o)) == 0 {
			continue
		}
		if c.needs != "" && c.needs != relayed && !installed(c.needs) {
			fmt.Fprintf(stderr, "bench: %s is not installed; skipping %s\n", c.needs, c.Name)
			continue
		}
		field = append(field, c)
	}
	return field
}

// installed reports whether a library's compiler and launcher are installed.
func installed(library string) bool {
	for _, command := range []string{"mpicc.", "mpirun."} {
		if _, err := exec.LookPath(command + library); err != nil {
			return false
		}
	}
	return true
}

// wanted returns the items that a contender should measure.
func wanted(c contender, o options) []string {
	var words []string
	for _, item := range plan.Of(c.Processes, o.quick) {
		fits := c.most == 0 || item.Bytes <= c.most
		if fits && slices.Contains(c.tests, item.Test) && o.wants(c, item.Test) {
			words = append(words, item.String())
		}
	}
	return words
}

// wants reports whether -only matches a test of a contender.
func (o options) wants(c contender, test string) bool {
	return o.only.MatchString(fmt.Sprintf("%s n=%d/%s", c.Name, c.Processes, test))
}

// measure runs the rounds. It drops a contender that has failed twice. load contains the load of
// other work before each run, in percent.
func measure(ctx context.Context, w *workshop, field []contender, o options, stderr io.Writer) (results *report.Results, load []float64) {
	var shown []report.Contender
	for _, c := range field {
		if !slices.Contains(shown, c.Contender) {
			shown = append(shown, c.Contender)
		}
	}
	results = report.NewResults(shown)
	random := rand.New(rand.NewPCG(o.seed, 0))
	failures := make([]int, len(field))
	for round := range o.rounds {
		for _, i := range shuffle(field, random) {
			c := field[i]
			if failures[i] > 1 || ctx.Err() != nil || c.isProgram() && round%2 == 1 {
				continue
			}
			if part, ok := settle(ctx, o.wait); ok {
				load = append(load, 100*part)
			}
			start := time.Now()
			err := one(ctx, w, c, wanted(c, o), func(r plan.Result) { results.Add(round, c.Contender, r) })
			fmt.Fprintf(stderr, "bench: round %d/%d  %-20s n=%d  %5.1f s\n", round+1, o.rounds, c.Name, c.Processes, time.Since(start).Seconds())
			if err != nil {
				failures[i]++
				fmt.Fprintf(stderr, "bench: %s n=%d: %v\n", c.Name, c.Processes, err)
			}
		}
	}
	return results, load
}

// shuffle returns the contenders' indices in random order, except that followers stay directly after the
// contenders that they follow.
func shuffle(field []contender, random *rand.Rand) []int {
	var groups [][]int
	for i, c := range field {
		if c.follows() && i > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
		} else {
			groups = append(groups, []int{i})
		}
	}
	random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return slices.Concat(groups...)
}

// one runs a contender once.
func one(ctx context.Context, w *workshop, c contender, items []string, add func(plan.Result)) error {
	ctx, cancel := context.WithTimeout(ctx, perRun)
	defer cancel()
	mine := *w
	if w.profile != "" {
		mine.profile = filepath.Join(w.profile, strings.ReplaceAll(fmt.Sprintf("%s n=%d", c.Name, c.Processes), " ", "-"))
		if err := os.MkdirAll(mine.profile, 0o755); err != nil {
			return err
		}
	}
	out, err := c.run(ctx, &mine, items)
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue // a message of mpirun itself
		}
		var r plan.Result
		if malformed := json.Unmarshal(line, &r); malformed != nil {
			return errors.Join(err, fmt.Errorf("read the output: %w", malformed))
		}
		add(r)
	}
	return err
}
