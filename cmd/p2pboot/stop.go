package main

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

const stopLong = `Ends one job on this peer. Other jobs continue. JOB is the ID of the job or a
prefix of it; p2pboot jobs lists the IDs.

A job with replicas is handed over to other peers, for at most 10 s. Then the
peer ends the remaining processes of the job, and tells the submitter that the
owner has stopped it. --now skips the handover. The command returns when the job
has left this peer.

The job gets no more slots here until the peer restarts. To exclude a submitter
permanently, use p2pboot --deny.

Exit status: 0 the job has left this peer, 64 wrong usage, 69 no peer runs on
the home, or it has no such job, 73 the home cannot be used, 130 interrupted
while waiting.`

const stopExamples = `  p2pboot jobs               list the jobs
  p2pboot stop 3f2b8c1e      hand it over, or end it
  p2pboot stop 3f2b8c1e --now`

func stopCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("stop JOB [--home DIR] [--now] [--json]", "End one job here.")
	c.Long, c.Example = stopLong, stopExamples
	id := ""
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return command.UsageError("JOB is missing: p2pboot jobs lists the jobs")
		}
		id = args[0]
		return nil
	}
	now := c.Flags().Bool("now", false, "end the job at once, without a handover")
	get := func(ctx context.Context) (status.Stopped, error) {
		return onPeer(ctx, cfg.Home, func(client *control.Client) (status.Stopped, error) {
			asked, said := traceSent(ctx)
			stopped, err := client.Stop(asked, id, *now)
			return stopped, stopFailed(ctx, err, said())
		})
	}
	return viewOf(c, &cfg, stdout, get, display.Stopped)
}

// traceSent returns a context for one request, and a function that reports whether the request was sent.
func traceSent(ctx context.Context) (context.Context, func() bool) {
	var sent atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			sent.Store(true)
		}
	}}), sent.Load
}

// stopFailed returns the failure for a request that returned err. If ctx has ended, the message depends on
// whether the request was sent: a peer that has received the request stops the job even if the command does not
// wait.
func stopFailed(ctx context.Context, err error, said bool) error {
	_, refused := errors.AsType[*control.RefusedError](err)
	switch {
	case err == nil || refused || ctx.Err() == nil:
		return command.Fail(command.Unavailable, err, "")
	case said:
		return command.Fail(command.Cancelled, errors.New("interrupted; the job will be stopped nevertheless"), "")
	}
	return command.Fail(command.Cancelled, errors.New("interrupted; the peer was not asked to stop the job"), "")
}
