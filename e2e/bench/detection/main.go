package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the values of the command line options.
type options struct {
	seed  uint64
	large bool
	hours int
	out   string
	only  *regexp.Regexp
}

// command is the main function of three kinds of processes: the process that the user starts; the process that
// the first one starts in a network namespace (inNamespace); and the group members that the second one starts
// (start).
func command(args []string, stdout, stderr io.Writer) int {
	var err error
	switch {
	case len(args) == 2 && args[0] == "member":
		err = member(args[1], os.Stdin, stdout)
	case len(args) == 3 && args[0] == "inside":
		err = inside(args[1], args[2])
	default:
		var o options
		if o, err = parse(args, stderr); err != nil {
			return 64
		}
		err = measure(o, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "detection: error: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("detection", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Uint64Var(&o.seed, "seed", 1, "`SEED` of all random choices")
	flags.BoolVar(&o.large, "large", false, "also measure groups of 1,024 and 10,000 members; groups of 10,000 members need 5 GB")
	flags.IntVar(&o.hours, "hours", 24, "count false failures in `HOURS` of virtual time")
	flags.StringVar(&o.out, "out", "", "write the tables into `DIR`/failure-detection.md")
	only := flags.String("only", "", "measure only tables whose names match `REGEXP`: times, schemes, false, bytes, memberlist, real-times, real-false")
	if err = flags.Parse(args); err == nil {
		o.only, err = regexp.Compile(*only)
	}
	return o, err
}

// tables are the measurements, by the name of the section that shows them.
var tables = []struct {
	name string
	of   func(options) ([][]string, error)
}{
	{"times", detectionTimes},
	{"schemes", schemeTimes},
	{"false", falseFailures},
	{"bytes", traffic},
	{"memberlist", memberlistTimes},
	{"real-times", realTimes},
	{"real-false", realWrong},
}

func measure(o options, stdout io.Writer) error {
	for _, t := range tables {
		if !o.only.MatchString(t.name) {
			continue
		}
		begun := time.Now()
		rows, err := t.of(o)
		if err != nil {
			return fmt.Errorf("measure %s: %w", t.name, err)
		}
		text := markdown.Table(rows)
		fmt.Fprintf(stdout, "%s (%v)\n\n%s\n", t.name, time.Since(begun).Round(time.Second), text)
		if o.out != "" {
			if err := markdown.Insert(filepath.Join(o.out, "failure-detection.md"), "detection:"+t.name, text); err != nil {
				return err
			}
		}
	}
	return nil
}
