package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == spinning {
		spin()
	}
	tool.Tool[options]{Name: called, Parse: parse, Work: bench}.Main()
}

// called is the name of the command and of its sections.
const called = "owner"

// options are the values of the command line options.
type options struct {
	length   time.Duration
	niceness int
	starve   time.Duration
	seed     uint64
	out      string
}

func parse(flags *flag.FlagSet, args []string) (o options, err error) {
	flags.DurationVar(&o.length, "for", time.Minute, "begin no round after `TIME`; 0 builds nothing")
	flags.IntVar(&o.niceness, "niceness", 10, "niceness `N` of the second peer's jobs")
	flags.DurationVar(&o.starve, "starve", 20*time.Second, "`TIME` for which the owner needs all processors in the end; 0 skips this")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "`SEED` of the order within rounds")
	flags.StringVar(&o.out, "out", "", "write tables into `DIR`/benchmarks.md, not to standard output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, errors.New("usage: owner [OPTION]..., and nothing else")
	}
	return o, nil
}

func bench(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	s, err := openSite(ctx, o.niceness)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	builds, err := s.rounds(ctx, o, stderr)
	if err != nil {
		return err
	}
	var parts []part
	for _, each := range []int{1, 4} {
		if o.starve == 0 {
			break
		}
		p, err := s.starve(ctx, each*runtime.NumCPU(), o.starve)
		if err != nil {
			return fmt.Errorf("run a job while the owner needs all processors: %w", err)
		}
		parts = append(parts, part{each, p})
	}
	sections := []tool.Section{{Name: "builds", Text: s.buildTable(builds)}, {Name: "starving", Text: starveTable(parts)}}
	return tool.Publish(sections, called, o.out, "benchmarks.md", stdout)
}

// rareEvery is the interval between the rounds that include the rare loads.
const rareEvery = 4

// rounds repeats the build under every load until the time is over.
func (s *site) rounds(ctx context.Context, o options, stderr io.Writer) (all results, err error) {
	all = make(results)
	if _, err := s.build(ctx); err != nil { // fills the build cache
		return nil, err
	}
	random, begun := rand.New(rand.NewPCG(o.seed, 0)), time.Now()
	for round := 0; time.Since(begun) < o.length; round++ {
		for _, i := range random.Perm(len(s.loads)) {
			w := s.loads[i]
			if w.rare && round%rareEvery > 0 {
				continue
			}
			b, err := s.during(ctx, w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			fmt.Fprintf(stderr, "owner: round %d  %-12s %6.2f s, %6.2f s of processors\n", round+1, w.name, b.took, b.used)
			all.add(round, w.name, b)
		}
	}
	return all, nil
}
