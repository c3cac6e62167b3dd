package submit

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// maxPauses limits how often the user is told that the owner of a peer has suspended or resumed the
// job.
const maxPauses = 64

// paused tells the user that the processes of a peer are suspended, or have resumed. Suspended
// processes owe the submitter no answer, and their peer stays connected. A finished job does not
// wait for their accounts.
func (e *execution) paused(l *link, m *jobpb.Paused) {
	l.suspended = m.Rule != ""
	switch l.pauses++; {
	case l.pauses > maxPauses:
	case m.Rule == "":
		e.j.warn(fmt.Sprintf("peer %s resumes the job", short(l.peer)))
	default:
		e.j.warn(fmt.Sprintf("the owner of peer %s needs the machine (%s): the job's processes there are suspended, and end if that lasts longer than %v",
			short(l.peer), plain(m.Rule), max(0, time.Duration(m.MostNs))))
	}
}
