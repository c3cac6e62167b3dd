package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

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
	asJSON := addJSONFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := peer.Fill(c.Flags()); err != nil {
			return command.Fail(command.Usage, err, "")
		}
		shown, err := get(c.Context())
		switch {
		case err != nil:
			return err
		case *asJSON:
			return writeJSON(stdout, shown)
		}
		_, err = io.WriteString(stdout, text(shown))
		return err
	}
	return c
}

// addJSONFlag adds the option --json, which all subcommands with output share.
func addJSONFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON on standard output")
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
