package display

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/peer"
)

// TestFindingsFitATerminal shows the findings of a machine with many problems.
func TestFindingsFitATerminal(t *testing.T) {
	text := Findings(peer.Diagnose(peer.Diagnostics{Network: &peer.NetworkState{Supernodes: 2, Reachability: peer.Private}}))
	expectFits(t, text,
		"ok       peer: runs, announces 0 addresses",
		"\nfailure  reachability: no other peer can reach this machine; connected directly\n ",
	)
}
