package submit

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestV4FailureOfAPeerThatNeverCallsInitNamesIt: the job begins without that peer, and the message
// names it.
func TestV4FailureOfAPeerThatNeverCallsInitNamesIt(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	b.submitter.waits.silence = time.Second
	b.play(func(p *part) {
		q := p.processes[0]
		p.start()
		if q.Replica == 2 {
			p.until(q, view.Failed)
			return
		}
		p.enter()
		p.writes(q, 0, "right\n")
		p.closes(q, 1)
		p.exits(q, wellEnded)
	})
	o := b.run(b.request(1, 3), nil)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "right\n")
	o.told("did not call mpj.Init long after most replicas of its rank had (rank 0 replica 2 on peer …")
}
