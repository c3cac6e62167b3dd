package submit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestSuspendReasonsAreReported: the number of messages is limited, even if a peer
// lies.
func TestSuspendReasonsAreReported(t *testing.T) {
	e := newHearing(t)
	var said []string
	e.j.events = Showing(func(e Event) error { said = append(said, e.Text); return nil })
	l := e.peers.links[0]
	hear := func(rule string) {
		m := &jobpb.FromPeer{Body: &jobpb.FromPeer_Paused{Paused: &jobpb.Paused{Rule: rule, MostNs: int64(time.Hour)}}}
		if r := e.handle(received{link: l, msg: m}); r != nil || l.err != nil {
			t.Fatalf("%v, %v", r, l.err)
		}
	}
	hear("bat\ntery")
	hear("")
	for range 2 * maxPauses {
		hear("metered")
	}
	e.j.events.finish()
	if len(said) != maxPauses || !strings.Contains(said[0], "(bat tery): the job's processes there are suspended, and end if that lasts longer than 1h0m0s") ||
		!strings.Contains(said[1], "resumes the job") || slices.Contains(said, "") {
		t.Errorf("%d sentences, the first: %q", len(said), said[:min(2, len(said))])
	}
}
