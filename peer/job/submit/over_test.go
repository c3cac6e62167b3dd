package submit

import (
	"fmt"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestPeerLearnsWhetherItsPartIsOver: the job is over, or continues without the peer. An unknown job
// may belong to another process of the submitter, and may be resumed.
func TestPeerLearnsWhetherItsPartIsOver(t *testing.T) {
	b := newBed(t, never, 1, 1)
	s, asks, other := b.submitter, b.peers[0], b.peers[1].ID()
	s.setPartners("runs here", []p2ppeer.ID{other, asks.ID()})
	s.setPartners("runs elsewhere", []p2ppeer.ID{other})
	s.setPartners("starts", nil)
	for job, want := range map[string]bool{"runs here": false, "runs elsewhere": true, "starts": false, "unknown": false, "": false} {
		if got, err := jobpb.AskOver(t.Context(), asks, b.own.ID(), job); got != want || err != nil {
			t.Errorf("%q: got %v, %v; want %v", job, got, err, want)
		}
	}
	if over, err := jobpb.AskOver(t.Context(), asks, b.own.ID(), strings.Repeat("x", 1<<10)); over || err == nil {
		t.Errorf("an endless name: got %v, %v", over, err)
	}
}

// TestEndedJobIsOverForEveryPeer: the job is over for every peer, and the number of remembered jobs
// is limited.
func TestEndedJobIsOverForEveryPeer(t *testing.T) {
	b := newBed(t, never, 1)
	b.play(func(p *part) {
		p.start()
		p.ends(p.processes[0])
	})
	b.run(b.request(1, 1), nil).want(job.StatusOK, "")
	if len(b.submitter.over) != 1 || !b.submitter.isOver(b.peers[0].ID(), b.submitter.over[0]) {
		t.Errorf("over: %q", b.submitter.over)
	}
	for i := range 2 * maxOver {
		b.submitter.setOver(fmt.Sprint(i))
	}
	if got := len(b.submitter.over); got != maxOver {
		t.Errorf("%d jobs are remembered", got)
	}
}
