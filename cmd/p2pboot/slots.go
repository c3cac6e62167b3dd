package main

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
)

const slotsLong = `Changes how many slots the running peer of this home has, until it ends: the next
start goes by --slots again. Where more are taken than are left, the newest jobs
with replicas are handed over to other peers, as p2phalt does; the others keep
theirs until they are done. 0 takes nothing new, and introduces and submits on.

Exit status: 0 done, 64 wrong usage, 69 no peer is running on the home.`

const slotsExamples = `  p2pboot slots 1            before a large build of your own
  p2pboot slots 8            afterwards`

// slotsCommand is p2pboot slots.
func slotsCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("slots N [--home DIR] [--json]", "Lend fewer slots, or more.")
	c.Long, c.Example = slotsLong, slotsExamples
	cfg.AddHomeFlags(c.Flags())
	asJSON := addJSONFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := peer.Fill(c.Flags()); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		if len(args) != 1 {
			return command.Misused("want how many slots, such as p2pboot slots 2")
		}
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 {
			return command.Misused("%q: want a number of slots", args[0])
		}
		client, err := dialHome(c.Context(), cfg.Home)
		if err != nil {
			return err
		}
		defer client.Close()
		s, err := client.Resize(c.Context(), n)
		switch {
		case err != nil:
			return command.Fail(command.Unavailable, err, "")
		case *asJSON:
			return writeJSON(stdout, s)
		}
		_, err = io.WriteString(stdout, display.Slots(s))
		return err
	}
	return c
}
