package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
)

const doctorLong = `Checks this machine and the peer on this home, and suggests a remedy for each
problem. The checks cover:
  - connections to the supernodes, and whether other peers can reach this one
  - the router: its kind of address translation (NAT), and whether it maps ports
  - the clock, compared with the clocks of other peers
  - free disk space, and the limits on open files, processes and memory
  - the kernel and the sandbox

If no peer runs on the home, give the options that you will give to p2pboot. The
command then also checks whether the home can be used and the ports are free.

Exit status: 0 no problem, 1 warnings, 2 failures, 64 wrong usage or
configuration, 69 the peer does not answer.`

const doctorExamples = `  p2pboot doctor             as text
  p2pboot doctor --json      as JSON, for scripts`

func doctorCommand(stdout io.Writer) *cobra.Command {
	cfg := peer.DefaultConfig()
	c := command.New("doctor [--json] [OPTION]...", "Check this machine and suggest remedies.")
	c.Long, c.Example = doctorLong, doctorExamples
	var findings []doctor.Finding
	get := func(ctx context.Context) ([]doctor.Finding, error) {
		if err := cfg.Validate(); err != nil {
			return nil, command.Fail(command.Usage, err, "")
		}
		diagnostics, err := peer.Examine(ctx, cfg)
		if err != nil {
			return nil, command.Fail(command.Unavailable, err, "")
		}
		findings = doctor.Diagnose(diagnostics)
		return findings, nil
	}
	viewOf(c, &cfg, stdout, get, display.Findings)
	cfg.AddVolunteerFlags(c.Flags())
	cfg.AddNetworkFlags(c.Flags())
	c.PostRunE = func(*cobra.Command, []string) error { return findingsError(doctor.Worst(findings)) }
	return c
}

// Exit statuses of p2pboot doctor.
const (
	hasWarnings = 1
	hasFailures = 2
)

// findingsError returns the exit status for the worst finding, without a message, because the findings have
// been printed.
func findingsError(worst doctor.Level) error {
	switch worst {
	case doctor.Warning:
		return command.Fail(hasWarnings, errors.New(""), "")
	case doctor.Failing:
		return command.Fail(hasFailures, errors.New(""), "")
	}
	return nil
}
