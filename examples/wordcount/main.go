package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: wordcount [-top K | -all] [-farm]; counts the staged files, or those in the current folder")

// exitUsage is the exit status for wrong arguments.
const exitUsage = 64

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, errUsage) {
		world.Abort(exitUsage, err.Error()) // ends the whole job, with one message
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	top, farm, err := parse(args)
	if err != nil {
		return err
	}
	files, err := listOnce(world.Comm, stderr)
	if err != nil {
		return err
	}
	counted := make(tally)
	mine, err := countShare(world.Comm, counted, files, farm)
	if err != nil {
		return err
	}
	owned, err := shuffle(world.Comm, counted)
	if err != nil {
		return err
	}
	t, err := tabulate(world.Comm, owned, mine, top)
	if err != nil || world.Rank() != 0 {
		return err
	}
	if t.totals.files != int64(len(files)) {
		return fmt.Errorf("counted %d files of %d", t.totals.files, len(files))
	}
	return t.print(stdout)
}

// parse returns the number of words to print, and whether to assign files on demand.
func parse(args []string) (top int, farm bool, err error) {
	flags := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	all := flags.Bool("all", false, "print all words")
	flags.BoolVar(&farm, "farm", false, "assign files on demand to ranks that are idle")
	flags.IntVar(&top, "top", 20, "print the `K` most frequent words")
	switch err := flags.Parse(args); {
	case err != nil && !errors.Is(err, flag.ErrHelp):
		return 0, false, fmt.Errorf("%w: %w", errUsage, err)
	case err != nil || flags.NArg() > 0 || top < 0:
		return 0, false, errUsage
	case *all:
		top = math.MaxInt
	}
	return top, farm, nil
}

// listOnce returns the files in the working directory of rank 0 at every rank, so that all ranks
// divide the same list.
func listOnce(c *mpj.Comm, stderr io.Writer) ([]file, error) {
	var files []file
	if c.Rank() == 0 {
		var others []string
		var err error
		if files, others, err = list("."); err != nil {
			return nil, err
		}
		if len(others) > 0 {
			fmt.Fprintf(stderr, "wordcount: not counted (not a regular file): %q and %d others\n", others[0], len(others)-1)
		}
	}
	return mpj.BcastValue(c, files, 0)
}

// countShare counts the words of this rank's share of files, and adds them to t.
func countShare(c *mpj.Comm, t tally, files []file, farm bool) (totals, error) {
	buf := make([]byte, 64<<10)
	if !farm || c.Size() == 1 {
		return count(t, shares(files, c.Size())[c.Rank()], buf)
	}
	all := batches(files)
	if c.Rank() == 0 {
		return totals{}, deal(c, len(all))
	}
	var sum totals
	err := ask(c, func(batch int) error {
		part, err := count(t, all[batch], buf)
		sum = totals{sum.files + part.files, sum.bytes + part.bytes, sum.words + part.words}
		return err
	})
	return sum, err
}

// tabulate combines the counts of all ranks at rank 0.
func tabulate(c *mpj.Comm, owned tally, mine totals, top int) (table, error) {
	entries, err := collect(c, owned.sorted(byCount), top)
	if err != nil {
		return table{}, err
	}
	n := []int64{mine.files, mine.bytes, mine.words, int64(len(owned))}
	err = mpj.Reduce(c, n, n, mpj.Sum, 0)
	return table{entries, totals{n[0], n[1], n[2]}, n[3]}, err
}
