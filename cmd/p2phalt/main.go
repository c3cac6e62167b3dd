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
	"github.com/p2pmpi/p2pmpi/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const long = `Takes this machine back: ends the peer that p2pboot has started, and returns
when it has gone. Jobs that run here with replicas are handed over first:
another replica of each rank takes over, or one is made on another peer. That
takes a second or two, and ten at most; then what is left ends with the peer.

--drain waits for what cannot be migrated: jobs without replicas, those whose
submitter is out of reach, and those that were handed to this peer by p2prun,
also one whose p2prun was killed, to which p2prun --attach may come back for as
long as the job's --away says. Without --drain these are cancelled. --now hands
nothing over: jobs with other replicas notice, and go on all the same.

Every option is also a configuration key and an environment variable
P2PMPI_...; see p2pboot --help.

Exit status: 0 the peer has gone, 64 wrong usage, 69 no peer is running on the
home, or it may not be asked by this user, 130 interrupted while waiting.`

const examples = `  p2phalt            hand over what can be, and end within seconds
  p2phalt --drain    harm no job: wait for those that cannot be migrated
  p2phalt --now      end at once`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg := peer.DefaultConfig()
	c := command.New("p2phalt [--home DIR] [--drain | --now]", "Take this machine back from its network.")
	c.Long, c.Example = long, examples
	cfg.AddHomeFlags(c.Flags())
	peer.AddHaltFlags(c.Flags())
	c.Args = command.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := peer.Fill(c.Flags()); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		drain, _ := c.Flags().GetBool("drain")
		now, _ := c.Flags().GetBool("now")
		return halt(ctx, cfg.Home, drain, now)
	}
	return command.Run(ctx, c, args, stdout, stderr)
}

// halt ends the peer on home.
func halt(ctx context.Context, home string, drain, now bool) error {
	how := peer.Orderly
	switch {
	case drain && now:
		return command.Misused("--drain and --now exclude each other")
	case drain:
		how = peer.Drain
	case now:
		how = peer.Now
	}
	client, err := peer.Dial(ctx, home)
	if errors.Is(err, peer.ErrNoPeer) {
		return command.Fail(command.Unavailable, err, "name the peer's folder with --home or P2PMPI_HOME")
	}
	if errors.Is(err, peer.ErrNotAllowed) {
		return command.Fail(command.Unavailable, err, command.HintNotAllowed)
	}
	if err != nil {
		return command.Fail(command.Usage, err, "")
	}
	defer client.Close()
	if err := client.Halt(ctx, how); err != nil {
		if ctx.Err() != nil {
			return command.Fail(command.Cancelled, errors.New("interrupted; the peer was asked to end, and still may"), "")
		}
		return command.Fail(command.Unavailable, err, "")
	}
	return nil
}
