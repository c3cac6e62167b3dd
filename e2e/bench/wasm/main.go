package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "host" {
		status, err := host(os.Args[2:])
		if err != nil {
			fail(err)
		}
		os.Exit(status)
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, in each of which every contender runs once")
	flag.BoolVar(&o.quick, "quick", false, "run small problems, for a quick look")
	flag.StringVar(&o.out, "out", "", "write the tables into `FOLDER`/benchmarks.md (default standard output)")
	flag.StringVar(&o.dir, "dir", "", "build in `FOLDER` and keep the results (default a temporary folder)")
	only := flag.String("only", "", "run only trials that match `REGEXP`, such as '^Go/cg' or '^Message'")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		err = run(o)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "wasm:", err)
	os.Exit(1)
}

type options struct {
	rounds int
	quick  bool
	out    string
	dir    string
	only   *regexp.Regexp
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "p2pmpi-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	w, err := openWorkshop(ctx, o.dir)
	if err != nil {
		return err
	}
	var r results
	for _, t := range trials(o.quick) {
		if !o.only.MatchString(t.table + "/" + t.row) {
			continue
		}
		if err := t.program.build(ctx, w); err != nil {
			return err
		}
		r.trials = append(r.trials, t)
	}
	r.seconds = make([][]float64, len(r.trials))
	for round := range o.rounds {
		if err := r.measure(ctx, w, round); err != nil {
			fmt.Fprintf(os.Stderr, "wasm: round %d/%d: %v\n", round+1, o.rounds, err)
			break // publish the results so far
		}
	}
	return publish(r, o.out)
}

// publish writes the tables that have results.
func publish(r results, out string) error {
	for _, name := range tables {
		text := r.table(name)
		section := strings.ToLower(name)
		switch {
		case text == "":
		case out == "":
			fmt.Printf("## %s\n\n%s\n", section, text)
		default:
			if err := markdown.Insert(filepath.Join(out, "benchmarks.md"), "wasm:"+section, text); err != nil {
				return err
			}
		}
	}
	return nil
}
