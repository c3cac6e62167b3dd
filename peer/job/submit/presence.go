package submit

import (
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

// The fault detector expects no table of a peer that has not sent one yet, since the peer may start
// late. So the job's peers also report on their control streams that they are connected, every
// reportPeriod, from staging until the fault detector watches all of them. The submitter makes the
// detector question a peer that stops reporting. While a job is staged, before it has a detector,
// the submitter acts itself (await.go).
const (
	// reportPeriod is the interval between two reports of a peer (package launch).
	reportPeriod = 250 * time.Millisecond
	// startWindow is how long the submitter expects these reports after the start: as long as a
	// peer's start may be late.
	startWindow = 5 * time.Second
	// presencePeriod is how often the submitter checks the reports.
	presencePeriod = reportPeriod / 2
)

// A presence reviews these reports while a job starts.
type presence struct {
	began    time.Time // when all peers had started
	reviewed time.Time // time of the last review
}

// review makes the fault detector question the peers that have not reported for the tolerated time.
// It returns false once the peers need not report any more.
func (p *presence) review(now time.Time, m *membership, d *faultdetect.Group, tolerated time.Duration) bool {
	stopped := now.Sub(p.reviewed) > 2*presencePeriod
	p.reviewed = now
	switch {
	case now.Sub(p.began) > startWindow || d == nil:
		return false
	case stopped: // this process did not run: reports may lie unread
		for _, l := range m.links {
			l.heardAt = now
		}
	default:
		for _, l := range m.unheardPeers(now, tolerated) {
			d.Silent(l.peer, now.Sub(l.heardAt))
			l.heardAt = now // it is being questioned now
		}
	}
	return true
}
