package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

const slotsLong = `Changes the number of slots of the running peer to N, until the peer ends. The
next start uses --slots again.

If more than N slots are in use, the peer hands over its newest jobs with
replicas. Jobs that cannot be handed over keep their slots until they end, or
until p2pboot stop ends them. With 0 slots the peer takes no new jobs. It still
introduces other peers and submits jobs.

Exit status: 0 done, 64 wrong usage, 69 no peer runs on the home, 73 the home
cannot be used.`

const slotsExamples = `  p2pboot slots 1            before a large build of your own
  p2pboot slots 8            afterwards`

func slotsCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("slots N [--home DIR] [--json]", "Change the number of slots.")
	c.Long, c.Example = slotsLong, slotsExamples
	var n int
	c.Args = func(_ *cobra.Command, args []string) (err error) {
		if len(args) != 1 {
			return command.UsageError("the number of slots is missing, as in p2pboot slots 2")
		}
		if n, err = strconv.Atoi(args[0]); err != nil || n < 0 {
			return command.UsageError("%q: want a number of slots", args[0])
		}
		return nil
	}
	get := func(ctx context.Context) (status.Slots, error) {
		return onPeer(ctx, cfg.Home, func(client *control.Client) (status.Slots, error) { return client.Resize(ctx, n) })
	}
	return viewOf(c, &cfg, stdout, get, display.Slots)
}
