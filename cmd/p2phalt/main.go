package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const long = `Takes this machine back: ends the peer that p2pboot has started, and returns
when it has ended. Prints what happens to each job, one line per job.

Without --drain or --now, the peer first hands over its jobs with replicas:
another replica of each rank takes over, or a new one starts on another peer.
That takes a second or two, and at most ten. Then the peer ends the remaining
processes and itself.

--drain waits for jobs that cannot be migrated: jobs without replicas, jobs
whose submitter is unreachable, and jobs that p2prun has handed to this peer.
Without --drain these jobs are cancelled. --now skips the handover: jobs with
replicas notice the loss and continue on other peers.

Every option is also a configuration key and an environment variable
P2PMPI_...; see p2pboot --help.

Exit status:
  0     the peer has ended
  64    wrong usage
  69    no peer runs on the home, or this user may not stop it
  73    the home cannot be used
  130   interrupted while waiting`

const examples = `  p2phalt            hand over jobs with replicas, and end within seconds
  p2phalt --drain    wait for the jobs that cannot be migrated
  p2phalt --now      end at once`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg := peer.DefaultConfig()
	c := command.New("p2phalt [--home DIR] [--drain | --now]", "Take this machine back from its network.")
	c.Long, c.Example = long, examples
	cfg.AddHomeFlags(c.Flags())
	peer.AddHaltFlags(c.Flags())
	asJSON := c.Flags().Bool("json", false, "print what happens to each job, as JSON, on standard output")
	c.Args = command.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := peer.Fill(c.Flags()); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		drain, _ := c.Flags().GetBool("drain")
		now, _ := c.Flags().GetBool("now")
		return halt(ctx, stdout, cfg.Home, drain, now, *asJSON)
	}
	return command.Run(ctx, c, args, stdout, stderr)
}

// halt ends the peer on home, and writes to stdout what happens to its jobs.
func halt(ctx context.Context, stdout io.Writer, home string, drain, now, asJSON bool) error {
	how := status.Orderly
	switch {
	case drain && now:
		return command.UsageError("--drain and --now cannot be combined")
	case drain:
		how = status.Drain
	case now:
		how = status.Now
	}
	client, err := control.Dial(ctx, home)
	if err != nil {
		return command.FailDial(err, "name the peer's folder with --home or P2PMPI_HOME")
	}
	defer client.Close()
	halting, err := client.Halt(ctx, how)
	if err == nil {
		if err := command.Print(stdout, asJSON, halting, display.Fates); err != nil {
			return err
		}
		err = homedir.AwaitGone(ctx, home)
	}
	if err != nil {
		if ctx.Err() != nil {
			return command.Fail(command.Cancelled, errors.New("interrupted; the peer was asked to stop, and may still stop"), "")
		}
		return command.Fail(command.Unavailable, err, "")
	}
	return nil
}
