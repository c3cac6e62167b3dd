package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

const statusLong = `Shows the peer that runs on this home:
  - its slots and limits, the classes of submitters that it accepts, and the
    rule that pauses it, if any (see p2pboot --pause-when)
  - its own memory, streams and goroutines
  - the jobs that run here, and the jobs that were submitted here
  - for each connected peer: whether the connection is direct, hole-punched or
    relayed, its round-trip time, and why there is no better connection
  - for each job here: how its processes reach processes on other peers, and the
    round-trip times

Exit status: 0 shown, 64 wrong usage, 69 no peer runs on the home, or this user
may not use its control socket, 73 the home cannot be used.`

const statusExamples = `  p2pboot status             as text
  p2pboot status --json      all details, for scripts`

func statusCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("status [--home DIR] [--json]", "Show the peer, its jobs and its connections.")
	c.Long, c.Example = statusLong, statusExamples
	get := func(ctx context.Context) (status.Status, error) { return statusOf(ctx, cfg.Home) }
	return viewOf(c, &cfg, stdout, get, display.Status)
}

func statusOf(ctx context.Context, home string) (s status.Status, err error) {
	client, err := dialHome(ctx, home)
	if err != nil {
		return s, err
	}
	defer client.Close()
	if s, err = client.Status(ctx); err != nil {
		return s, command.Fail(command.Unavailable, err, "")
	}
	return s, nil
}

// dialHome returns a client of the peer on home, or the command's failure.
func dialHome(ctx context.Context, home string) (*control.Client, error) {
	client, err := control.Dial(ctx, home)
	if err != nil {
		return nil, command.FailDial(err, "start one with p2pboot, or name its folder with --home or P2PMPI_HOME")
	}
	return client, nil
}
