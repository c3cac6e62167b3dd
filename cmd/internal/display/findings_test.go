package display

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/p2pmpi/p2pmpi/peer"
)

// TestFindingsFitATerminal shows what a machine has that lacks much.
func TestFindingsFitATerminal(t *testing.T) {
	text := Findings(peer.Diagnose(peer.Symptoms{Standing: &peer.Standing{Supernodes: 2, Reachability: peer.Private}}))
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{
		"ok       peer: runs, announces 0 addresses",
		"\nfailure  reachability: nobody reaches this machine\n         do: forward the port",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
