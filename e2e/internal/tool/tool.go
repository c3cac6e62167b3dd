package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// A Tool is a command that writes tables for the documentation. Its options have the type O.
type Tool[O any] struct {
	Name string
	// Parse parses the arguments; its errors are usage errors.
	Parse func(flags *flag.FlagSet, args []string) (O, error)
	// Work runs the command, until it is done or ctx ends.
	Work func(ctx context.Context, o O, stdout, stderr io.Writer) error
}

// Main runs the tool with the arguments of this process and exits. A signal ends ctx; a second
// signal ends the process at once.
func (t Tool[O]) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	status := t.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Run runs the tool and returns the exit status: 0, 64 for wrong usage, or 1 for an error.
func (t Tool[O]) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(t.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	o, err := t.Parse(flags, args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", t.Name, err)
		return 64
	}
	if err := t.Work(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", t.Name, err)
		return 1
	}
	return 0
}

// A Section is the text between two markers of a page. A Section without text leaves the page
// unchanged.
type Section struct{ Name, Text string }

// Publish writes sections of a tool into dir/page or, if dir is empty, to stdout.
func Publish(sections []Section, name, dir, page string, stdout io.Writer) error {
	for _, s := range sections {
		switch {
		case s.Text == "":
		case dir == "":
			fmt.Fprintf(stdout, "## %s\n\n%s\n", s.Name, s.Text)
		default:
			if err := markdown.Insert(filepath.Join(dir, page), name+":"+s.Name, s.Text); err != nil {
				return err
			}
		}
	}
	return nil
}
