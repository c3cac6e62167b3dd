package display

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
)

// TestFindingsFitATerminal shows the findings of a machine with many problems.
func TestFindingsFitATerminal(t *testing.T) {
	text := Findings(doctor.Diagnose(doctor.Facts{Network: &doctor.Network{Supernodes: 2, Reachability: node.Private}}))
	expectFits(t, text,
		"ok       peer: running, announces 0 addresses",
		"\nfailure  reachability: no other peer can reach this machine; connected directly\n ",
	)
}
