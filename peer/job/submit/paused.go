package submit

import (
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// maxPauses limits how often the user is told that the owner of a peer has suspended or resumed the
// job.
const maxPauses = 64

// pause records that the owner of the peer has suspended its processes, or resumed them, and returns
// a message to the user, or "". Suspended processes owe the submitter no answer, and their peer
// stays connected. A finished job does not wait for their accounts.
func (r *reported) pause(peer p2ppeer.ID, m *jobpb.Paused) string {
	r.suspended = m.Rule != ""
	switch r.pauses++; {
	case r.pauses > maxPauses:
		return ""
	case m.Rule == "":
		return fmt.Sprintf("peer %s resumes the job", short(peer))
	}
	return fmt.Sprintf("the owner of peer %s needs the machine (%s): the job's processes there are suspended, and end if that lasts longer than %v",
		short(peer), plain(m.Rule), max(0, time.Duration(m.MostNs)))
}
