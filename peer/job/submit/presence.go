package submit

import "time"

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

// reviewPresence makes the fault detector question the peers that have not reported for the
// tolerated hang, while the job starts.
func (e *execution) reviewPresence() {
	now := time.Now()
	stopped := now.Sub(e.presenceAt) > 2*presencePeriod
	e.presenceAt = now
	switch {
	case now.Sub(e.begun) > startWindow || e.partitioned || e.resumption != nil || e.detector == nil:
		e.presenceTicks = nil
	case stopped: // this process did not run: reports may lie unread
		for _, l := range e.peers.links {
			l.heardAt = now
		}
	default:
		for _, l := range e.peers.unheardPeers(now, e.replaceAfter()) {
			e.detector.Silent(l.peer, now.Sub(l.heardAt))
			l.heardAt = now // it is being questioned now
		}
	}
}

// unheardPeers returns the links to peers that have not reported for the tolerated time.
func (m *membership) unheardPeers(now time.Time, tolerated time.Duration) (out []*link) {
	for _, l := range m.links {
		mute := l.err != nil || l.retired || l.disconnected || l.recruit != nil || l.peer == m.j.s.cfg.Host.ID()
		if !mute && now.Sub(l.heardAt) > tolerated-reportPeriod {
			out = append(out, l)
		}
	}
	return out
}
