package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/localnet"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

func main() {
	if status, ok := launch.Supervise(); ok {
		os.Exit(status)
	}
	if status, ok := localnet.Child(); ok {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)   // the first signal cancels the job, the second ends the process at once
	signal.Ignore(syscall.SIGPIPE) // a closed output pipe ends the job properly
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const long = `Runs PROGRAM on the peers of a network, as N ranks of R replicas each. PROGRAM
is an executable file, the name of one in PATH, a WebAssembly module (x.wasm, a
WASI program), which runs on peers of every platform, or a Go package (./folder
or import path), which is built first for the platforms of the peers. The job is
handed to the peer that runs on --home; without one, p2prun joins the network
by itself, through --supernode or the local network.

Standard output contains only the standard output of the ranks. The first
Ctrl-C cancels the job, the second ends p2prun at once.

The file given with -l lists one input per line: a file, a folder (all files
below it), or "URL [sha256:DIGEST] [as PATH]", which is downloaded, kept in the
cache of the peer on --home, and refused if its digest differs. Inputs keep
their path relative to the current folder. -i accepts the same.

A started job with replicas continues for the time --away after p2prun is
killed. p2prun --attach JOB resumes it on the same home: it prints the output
that was not printed yet, and exits as the first p2prun would have. JOB may be a
prefix of the ID, and may be omitted if there is only one job. With --cancel it
ends the job. If the p2pboot that took over the job is killed, p2prun waits for
the same time for a new p2pboot on that home, which --attach also requires.

Every option --some-thing is also the key some-thing of the configuration file
and the environment variable P2PMPI_SOME_THING; see p2pboot --help. The ranks
get P2PMPI_CHECK and P2PMPI_COLL (see package mpj) from the environment of
p2prun.

With --dry-run the job does not run: slots are held, reported on standard error,
and released at once. Exit status 0 if the job would start, 69 if not.

Exit status: 0 the job succeeded; 1 to 125 the program's own, when all replicas
of a rank exited with it; 64 wrong usage; 65 the replicas of a rank diverged;
69 not enough peers within -w, or no p2pboot that --attach requires; 70 a rank
lost all its replicas, or the submitter lost contact with most of its peers; 73
the home cannot be used; 75 timed out; 130 cancelled.`

const examples = `  p2prun --local 6 -n 3 -r 2 ./examples/ep W
                                   six throw-away peers on this machine
  p2prun --local 6 -n 3 -r 2 --lose 2s ./examples/ep A
                                   the same, and lose one while it runs
  p2prun -n 16 -r 2 ./prog         on the network of your p2pboot
  p2prun -n 16 -r auto --success 0.99 --expect 2h ./prog
                                   as many replicas as that takes
  p2prun -n 4 -l files -o 'out/*' wordcount
                                   stage the files listed, collect the results
  p2prun --attach                  resume a job whose p2prun was killed`

const hintHelp = "p2prun --help lists the options"

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	// An interrupted command ends even if its output is not read.
	stdout, stderr := command.NewOutput(out), command.NewOutput(errs)
	defer context.AfterFunc(ctx, func() { interrupt(stdout, stderr) })()
	cfg := peer.DefaultConfig()
	cfg.LogLevel = "warn"
	opt := peer.DefaultRunOptions()
	c := command.New("p2prun [OPTION]... -n N PROGRAM [ARG]...\n  p2prun [OPTION]... --attach [--cancel] [JOB]", "Run a parallel program on the peers of a network.")
	c.Long, c.Example = long, examples
	flags := c.Flags()
	flags.SetInterspersed(false) // what follows PROGRAM is for the program
	opt.AddFlags(flags)
	cfg.AddHomeFlags(flags)
	cfg.AddNetworkFlags(flags)
	c.Args = cobra.ArbitraryArgs
	c.SetFlagErrorFunc(explainNP(c.FlagErrorFunc()))
	status := command.OK
	c.RunE = func(c *cobra.Command, args []string) error {
		begins := newJobOptions(flags)
		if err := peer.Fill(flags); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		if opt.Attach && len(begins) > 0 {
			return command.Fail(command.Usage, fmt.Errorf("%s: cannot be used with --attach, which resumes a job with its original options", strings.Join(begins, ", ")), hintHelp)
		}
		if opt.Cancel && !opt.Attach {
			return command.Fail(command.Usage, errors.New("--cancel requires --attach: it ends a job whose p2prun was killed"), hintHelp)
		}
		if opt.Ranks == 0 && !flags.Changed("ranks") && !opt.Attach {
			return command.Fail(command.Usage, errors.New("the number of ranks is missing: -n N"), hintHelp)
		}
		if opt.Replicas != peer.AutoReplicas && (flags.Changed("success") || flags.Changed("expect")) {
			return command.Fail(command.Usage, errors.New("--success and --expect require -r auto: they determine the number of replicas"), hintHelp)
		}
		var err error
		do := submitJob
		if opt.Attach {
			do = attach
		}
		status, err = do(ctx, cfg, opt, args, stdout, stderr)
		if f, ok := errors.AsType[*command.Failure](err); ok && opt.JSON {
			status = f.Status
			return display.WriteResult(stderr, job.Result{Status: f.Status, Message: f.Error(), Hint: f.Hint})
		}
		return err
	}
	if failed := command.Run(ctx, c, args, stdout, stderr); failed != command.OK {
		return failed
	}
	return status
}

// newJobOptions returns the options on the command line that apply only to a new job, and not to a resumed
// one.
func newJobOptions(flags *pflag.FlagSet) (names []string) {
	var ofJobs pflag.FlagSet
	new(peer.RunOptions).AddFlags(&ofJobs)
	flags.Visit(func(f *pflag.Flag) {
		if ofJobs.Lookup(f.Name) != nil && !slices.Contains([]string{"attach", "cancel", "tag-output", "json"}, f.Name) {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// interrupt bounds how long writes to the outputs may block.
func interrupt(outputs ...*command.Output) {
	for _, o := range outputs {
		o.Interrupt()
	}
}

// explainNP explains the option -n to users who write -np, as for other MPI implementations.
func explainNP(rest func(*cobra.Command, error) error) func(*cobra.Command, error) error {
	return func(c *cobra.Command, err error) error {
		invalid, isValue := errors.AsType[*pflag.InvalidValueError](err)
		unknown, isName := errors.AsType[*pflag.NotExistError](err)
		switch {
		case isValue && invalid.GetFlag().Shorthand == "n" && strings.HasPrefix(invalid.GetValue(), "p"):
			return command.Fail(command.Usage, errors.New("unknown option -np"), "the number of ranks is -n N")
		case isName && unknown.GetSpecifiedName() == "np":
			return command.Fail(command.Usage, errors.New("unknown option --np"), "the number of ranks is -n N")
		}
		return rest(c, err)
	}
}
