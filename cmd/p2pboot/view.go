package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
)

// viewOf makes c a subcommand that prints something about the home in cfg: the result of get, as text or,
// with --json, as JSON. It takes no arguments unless c.Args is set.
func viewOf[T any](c *cobra.Command, cfg *peer.Config, stdout io.Writer, get func(context.Context) (T, error), text func(T) string) *cobra.Command {
	if c.Args == nil {
		c.Args = command.NoArgs
	}
	cfg.AddHomeFlags(c.Flags())
	return printing(c, c.Flags(), stdout, get, text)
}

// printing makes c print the result of get. The environment and the configuration file set the given options.
func printing[T any](c *cobra.Command, options *pflag.FlagSet, stdout io.Writer, get func(context.Context) (T, error), text func(T) string) *cobra.Command {
	asJSON := addJSONFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := peer.Fill(options); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		shown, err := get(c.Context())
		if err != nil {
			return err
		}
		return command.Print(stdout, *asJSON, shown, text)
	}
	return c
}

// addJSONFlag adds the option --json, which all subcommands with output share.
func addJSONFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON on standard output")
}
