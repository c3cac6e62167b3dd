package main

import (
	"context"
	"errors"
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

func statusOf(ctx context.Context, home string) (status.Status, error) {
	return onPeer(ctx, home, func(client *control.Client) (status.Status, error) { return client.Status(ctx) })
}

// onPeer calls do with a client of the peer on home. The error is a command.Failure.
func onPeer[T any](ctx context.Context, home string, do func(*control.Client) (T, error)) (result T, err error) {
	client, err := control.Dial(ctx, home)
	if err != nil {
		return result, command.FailDial(err, "start one with p2pboot, or name its folder with --home or P2PMPI_HOME")
	}
	defer client.Close()
	result, err = do(client)
	if failed, ok := errors.AsType[*command.Failure](err); ok {
		return result, failed
	}
	return result, command.Fail(command.Unavailable, err, "")
}
