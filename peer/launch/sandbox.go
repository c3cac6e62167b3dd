package launch

import (
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// A Sandbox states which sandbox mechanisms a machine provides for native programs.
type Sandbox = sandbox.Report

// ExamineSandbox finds out which sandbox mechanisms are available to the peer of a home, by using them. It
// takes some ten milliseconds, and a process that begins with Supervise.
func ExamineSandbox(home string) Sandbox {
	home, err := filepath.Abs(home)
	if err != nil {
		return Sandbox{NoNamespaces: err.Error(), NoLandlock: err.Error(), NoSeccomp: err.Error()}
	}
	return supervisor.Probe(filepath.Join(home, scratchFolder))
}
