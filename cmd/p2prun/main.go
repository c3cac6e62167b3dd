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

const long = `Runs PROGRAM on the peers of a network, as N ranks with R replicas each.

PROGRAM is one of these:
  - an executable file, or the name of one in PATH
  - a WebAssembly module for WASI (x.wasm), which runs on peers of any platform
  - a Go package (./folder or an import path), which p2prun builds first

If a p2pboot runs on the same home (--home), p2prun hands the job to it.
Otherwise p2prun joins the network itself, through --supernode or mDNS.

Standard output contains only the standard output of the ranks. The first
Ctrl-C cancels the job. The second ends p2prun at once.

An input (-i, -l) is a file, a folder with everything below it, or
"URL [sha256:DIGEST] [as PATH]". p2prun downloads a URL once, and refuses the
file if its digest differs. An input keeps its path relative to the current
folder.

If p2prun is killed, a started job with replicas continues for the time of
--away. p2prun --attach JOB resumes the job on the same home. It prints the
output that was not printed yet, and ends with the exit status of the job. JOB
is the ID of the job or a prefix of it, and can be omitted if there is only one
job. If the job was handed to a p2pboot that was killed too, start that p2pboot
again first.

--dry-run holds the slots for the job, reports them on standard error and
releases them. The exit status is 0 if the job would start, and 69 if it would
not.

Every option --some-thing is also the key some-thing of the configuration file
and the environment variable P2PMPI_SOME_THING. p2prun passes the variables
P2PMPI_CHECK and P2PMPI_COLL to the ranks.

Exit status:
  0       the job succeeded
  1-125   all replicas of a rank exited with this status
  64      wrong usage
  65      the replicas of a rank diverged
  69      not enough peers within -w, or no p2pboot for --attach
  70      a rank lost all its replicas, or the submitter lost most of the peers
  73      the home cannot be used
  75      --timeout expired
  130     the job was cancelled`

const examples = `  p2prun --local 6 -n 3 -r 2 ./examples/ep W
                              six temporary peers on this machine
  p2prun --local 6 -n 3 -r 2 --lose 2s ./examples/ep A
                              the same, and kill one of them after 2 s
  p2prun -n 16 -r 2 ./prog    on the network of the p2pboot on this home
  p2prun -n 16 -r auto --success 0.99 --expect 2h ./prog
                              choose R for a success probability of 99 %
  p2prun -n 4 -l files -o 'out/*' wordcount
                              stage the listed inputs, collect the results
  p2prun --attach             resume a job whose p2prun was killed`

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
