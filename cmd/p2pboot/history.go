package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

const jobsLong = `Shows the jobs that have slots on this peer:
  - the submitter, its class (see p2pboot --accept), the program and its digest
  - the start time
  - the processor time and memory of the job's processes here, or "-" if the
    system does not report them

p2pboot history shows past jobs. p2pboot stop ends one job.

Exit status: 0 shown, 64 wrong usage, 69 no peer runs on the home, 73 the home
cannot be used.`

const jobsExamples = `  p2pboot jobs               as text
  p2pboot jobs --json        all details, for scripts`

func jobsCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("jobs [--home DIR] [--json]", "List the jobs that run here.")
	c.Long, c.Example = jobsLong, jobsExamples
	get := func(ctx context.Context) ([]status.HostedJob, error) {
		s, err := statusOf(ctx, cfg.Home)
		return s.Hosted, err
	}
	return viewOf(c, &cfg, stdout, get, func(hosted []status.HostedJob) string { return display.Jobs(hosted, time.Now()) })
}

const historyLong = `Shows the jobs that the peer has run, newest first:
  - the submitter, its class (see p2pboot --accept), the program and its digest
  - how long the job ran, and the processor time of its processes
  - the peak memory of its largest process, including its cached files, or "-"
    if no control group measured it
  - the sizes of program, inputs and outputs
  - how the job ended

--json also shows the SHA-256 digest of each job as its submitter signed it. The
peer need not be running. The file journal in the home holds this history. It
has at most 2 MiB; the oldest jobs are dropped.

Exit status: 0 shown, 64 wrong usage, 73 the home cannot be read.`

const historyExamples = `  p2pboot history            as text
  p2pboot history --json     all details, with full digests, for scripts`

func historyCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("history [--home DIR] [--json]", "List the jobs that have run here.")
	c.Long, c.Example = historyLong, historyExamples
	get := func(context.Context) ([]journal.Entry, error) {
		past, err := journal.OfHome(cfg.Home)
		return append([]journal.Entry{}, past...), command.FailHome(err) // an empty list in JSON, not null
	}
	return viewOf(c, &cfg, stdout, get, display.History)
}
