package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func main() {
	if status, ok := launch.Supervise(); ok {
		os.Exit(status)
	}
	command.OneProcessor()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const long = `Donates this machine to a network: starts a peer that runs processes of other
users' jobs. When the peer can take jobs, p2pboot prints one line,
"ready PEER-ID ADDRESS...". Other peers can pass any of these addresses to
--supernode. Behind a router, the peer learns later which of its addresses other
networks can reach; p2pboot status lists them.

The peer runs until p2phalt, SIGTERM or Ctrl-C. It then hands over jobs with
replicas, for at most 10 s, and ends. A second signal ends it at once.

Every option --some-thing is also the key some-thing of the configuration file
and the environment variable P2PMPI_SOME_THING. The command line overrides the
environment, and the environment overrides the file.

Exit status:
  0    stopped as requested
  64   wrong usage or configuration; or a peer already runs on the home, or with
       the same identity
  69   the peer could not start
  73   the home cannot be created or written`

const examples = `  p2pboot                                    lend one slot per processor
  p2pboot --slots 2 --max-jobs 1             at most two processes, of one job
  p2pboot --supernode /ip4/192.0.2.1/tcp/4001/p2p/12D3KooW...
  p2pboot --home /srv/p2pmpi --http 127.0.0.1:8080 --detach`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg := peer.DefaultConfig()
	c := command.New("p2pboot [OPTION]...\n  p2pboot COMMAND [OPTION]...", "Donate this machine to a network.")
	c.Long, c.Example = long, examples
	c.Args = command.NoArgs
	c.CompletionOptions.DisableDefaultCmd = false
	cfg.AddHomeFlags(c.Flags())
	cfg.AddVolunteerFlags(c.Flags())
	cfg.AddNetworkFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		err := peer.Fill(c.Flags())
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			return command.Fail(command.Usage, err, "")
		}
		if detach, _ := c.Flags().GetBool("detach"); detach {
			return runDetached(ctx, cfg.Home, args, stdout, stderr)
		}
		return boot(ctx, cfg, stdout, stderr)
	}
	c.AddCommand(statusCommand(stdout), jobsCommand(stdout), historyCommand(stdout), slotsCommand(stdout), stopCommand(stdout), doctorCommand(stdout), cacheCommand(stdout), networkCommand(os.Stdin, stdout))
	c.InitDefaultCompletionCmd()
	describeCompletion(c)
	return command.Run(ctx, c, args, stdout, stderr)
}

// describeCompletion replaces the help texts of cobra's command completion by texts in the form of the others.
func describeCompletion(c *cobra.Command) {
	completion, _, err := c.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Use, completion.DisableFlagsInUseLine = "completion SHELL", true
	completion.Short = "Print a completion script for a shell."
	completion.Long = "Prints a script that completes the commands and options of p2pboot in SHELL.\np2pboot completion SHELL --help explains how to load the script."
	for _, shell := range completion.Commands() {
		shell.Short = "Print the completion script for " + shell.Name() + "."
	}
}

// boot runs a peer until a signal or p2phalt ends it.
func boot(ctx context.Context, cfg peer.Config, stdout, stderr io.Writer) error {
	log, err := command.Logger(homedir.BoundLog(cfg.Home, stderr), cfg.LogLevel)
	if err != nil {
		return err
	}
	if _, err := cfg.NetworkChoice().ID(); err != nil {
		return command.Fail(command.Usage, err, "")
	}
	p, err := peer.New(ctx, cfg, peer.Volunteer, log)
	if err != nil {
		return explain(ctx, err)
	}
	if err := p.Unmet(); err != nil {
		log.Warn().Msgf("%v; will keep trying", err)
	}
	fmt.Fprintln(stdout, "ready", p.ID(), strings.Join(p.Addresses(), " "))
	select {
	case <-ctx.Done():
		p.Halt(status.Orderly)
		<-p.Halted()
	case <-p.Halted():
	}
	if err := p.Close(); err != nil {
		log.Error().Err(err).Msg("unclean shutdown")
	}
	return explain(ctx, p.Failed())
}

// explain converts the error of a failed peer to a failure with its exit status.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if duplicate, ok := errors.AsType[*peer.CopyError](err); ok {
		return command.Fail(command.Usage, duplicate, "remove the file identity from the copied home: it then gets its own identity")
	}
	if running, ok := errors.AsType[*homedir.RunningError](err); ok {
		return command.Fail(command.Usage, running, "give each peer a --home of its own, or end the running peer with p2phalt")
	}
	if _, ok := errors.AsType[*homedir.Error](err); ok {
		return command.FailHome(err)
	}
	if ctx.Err() != nil { // a signal arrived during the start
		return nil
	}
	return command.Fail(command.Unavailable, err, "")
}
