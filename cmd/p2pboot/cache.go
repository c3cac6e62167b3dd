package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

const cacheLong = `Shows the staged files that the peer keeps in case a later job needs them. Each
line has the beginning of the SHA-256 digest, the size, the time since the last
use, the jobs that use the file, and its URL if it was downloaded.

The peer keeps the cache below --cache-limit. p2pboot cache trim and p2pboot
cache clear shrink it now. Files that a job uses are never removed. The peer
need not be running.

Exit status: 0 shown, 64 wrong usage, 69 the peer does not answer, 73 the home
cannot be read or written.`

const cacheExamples = `  p2pboot cache              as text
  p2pboot cache --json       all details, for scripts
  p2pboot cache trim --to 512
                             shrink the cache to 512 MiB
  p2pboot cache clear        all files that no job uses`

func cacheCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("cache [--home DIR] [--json]\n  p2pboot cache trim --to MIB\n  p2pboot cache clear", "Show or trim the cache of staged files.")
	c.Long, c.Example = cacheLong, cacheExamples
	get := func(ctx context.Context) (status.Cache, error) {
		return onCache(ctx, cfg.Home, (*control.Client).Cache, control.CacheOf)
	}
	viewOf(c, &cfg, stdout, get, func(cache status.Cache) string { return display.Cache(cache, time.Now()) })
	c.AddCommand(trimCommand(stdout), clearCommand(stdout))
	return c
}

const trimExamples = `  p2pboot cache trim --to 512`

const trimLong = `Removes files that no job uses from the cache, least recently used first, until
the cache has at most MIB MiB. The peer need not be running.

Exit status: 0 done, 64 wrong usage, 69 the peer does not answer, 73 the home
cannot be read or written.`

func trimCommand(stdout io.Writer) *cobra.Command {
	c := command.New("trim [--home DIR] --to MIB [--json]", "Remove the least recently used files.")
	c.Long, c.Example = trimLong, trimExamples
	to := c.Flags().Int64("to", -1, "shrink the cache to `MIB` MiB (required)")
	c.Flags().Lookup("to").DefValue = "0" // there is no default
	return trimRun(c, stdout, func() (int64, error) {
		if *to < 0 || *to > maxTrim {
			return 0, command.UsageError("--to MIB is missing or invalid: want the size to keep, such as 512")
		}
		return *to << 20, nil
	})
}

// maxTrim is the greatest --to, in MiB.
const maxTrim = 1 << 40

const clearLong = `Removes all files that no job uses from the cache. The peer need not be
running.

Exit status: 0 done, 64 wrong usage, 69 the peer does not answer, 73 the home
cannot be read or written.`

func clearCommand(stdout io.Writer) *cobra.Command {
	c := command.New("clear [--home DIR] [--json]", "Remove all files that no job uses.")
	c.Long, c.Example = clearLong, "  p2pboot cache clear"
	return trimRun(c, stdout, func() (int64, error) { return 0, nil })
}

// trimRun makes c a command that trims the cache to the size that bytes returns.
func trimRun(c *cobra.Command, stdout io.Writer, bytes func() (int64, error)) *cobra.Command {
	cfg := peer.DefaultConfig()
	get := func(ctx context.Context) (t status.Trimmed, err error) {
		to, err := bytes()
		if err != nil {
			return t, err
		}
		running := func(p *control.Client, ctx context.Context) (status.Trimmed, error) { return p.TrimCache(ctx, to) }
		return onCache(ctx, cfg.Home, running, func(home string) (status.Trimmed, error) { return control.TrimCacheOf(home, to) })
	}
	return viewOf(c, &cfg, stdout, get, display.Trimmed)
}

// onCache calls running with a client of the peer on home. If no peer runs there, it calls alone with home, to
// operate on the cache directly.
func onCache[T any](ctx context.Context, home string, running func(*control.Client, context.Context) (T, error), alone func(string) (T, error)) (result T, err error) {
	client, err := control.Dial(ctx, home)
	if errors.Is(err, control.ErrNoPeer) {
		result, err = alone(home)
		return result, command.FailHome(err)
	}
	if err != nil {
		return result, command.FailHome(err)
	}
	defer client.Close()
	result, err = running(client, ctx)
	return result, command.Fail(command.Unavailable, err, "")
}
