package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// A submitterState tells where a job's submitter is, as far as this peer knows. docs/ARCHITECTURE.md shows the
// transitions.
type submitterState int

const (
	connected    submitterState = iota
	disconnected                // the control stream broke, and the submitter may open another
	unreachable                 // the job continues without the submitter
)

// A presence decides how long a job waits for its submitter. It reads no clock.
type presence struct {
	state         submitterState
	since         time.Time            // time since which it is in this state
	lastMessageAt time.Time            // time of the submitter's last message
	stagedAt      time.Time            // time at which staging completed here
	asked         bool                 // the submitter has sent Stop
	away          time.Duration        // time that the job continues without it, beyond minAbsence
	until         time.Time            // deadline of the job; zero: none
	mayReturn     bool                 // it may come back as a new process
	replaced      bool                 // it has come back as a new process, and the process that began the job is refused
	askAt         time.Time            // time of the next question whether the job is over
	askPause      time.Duration        // interval to the question after that
	endpoints     connection.Endpoints // addresses at which it accepts connections
	stopProbe     context.CancelFunc   // ends asking its machine whether it still runs; nil: that is not asked
}

const (
	// minAbsence is how long a job tolerates a silent submitter in any case. It is longer than a submitter
	// that is out of touch waits.
	minAbsence = 20 * time.Second
	// actAfter is how long the submitter must be silent before the peers propose changes of the view.
	// If it comes back later, it applies none of those changes before it has received their causes (package
	// submit, disconnected.go).
	actAfter = 10 * time.Second
	// maxAway bounds the time that a submitter can make a job continue without it.
	maxAway = time.Hour
	// maxAskPause bounds the interval between two questions whether the job is over.
	maxAskPause = time.Minute
)

// enter changes the state.
func (p *presence) enter(s submitterState, now time.Time) {
	p.state, p.since = s, now
	if p.stopProbe != nil {
		p.stopProbe()
		p.stopProbe = nil
	}
}

// silent reports whether the job continues without the submitter.
func (p *presence) silent() bool { return p.state == unreachable }

// heard reports whether the submitter has sent a message since it entered its state.
func (p *presence) heard() bool { return p.lastMessageAt.After(p.since) }

// setAway records how long the job continues without its submitter.
func (p *presence) setAway(m *jobpb.Start, now time.Time) {
	p.away, p.mayReturn = min(max(time.Duration(m.AwayNs), 0), maxAway), m.Returns
	if m.LeftNs > 0 {
		p.until = now.Add(time.Duration(m.LeftNs))
	}
}

// lose records that the submitter is silent. It returns false if that was known.
func (p *presence) lose(now time.Time) bool {
	if p.silent() {
		return false
	}
	p.enter(unreachable, now)
	return true
}

// reconnected records that the submitter has opened a control stream. failed tells whether the fault detector
// finds it silent nonetheless; the submitter then must join again.
func (p *presence) reconnected(failed bool, now time.Time) {
	if p.state == disconnected || p.state == unreachable && !failed {
		p.enter(connected, now)
	}
}

// joined records that the fault detector watches the submitter.
func (p *presence) joined(now time.Time) {
	if p.state == unreachable {
		p.enter(connected, now)
	}
}

// reconnectOverdue reports whether a disconnected submitter has been so for longer than the job tolerates. hang
// is the tolerated silence of a peer.
func (p *presence) reconnectOverdue(hang time.Duration, now time.Time) bool {
	return p.state == disconnected && now.Sub(p.since) > hang+minAbsence
}

// expired reports whether a job whose submitter is silent ends. short tells that only the submitter can let
// the job begin. A submitter that has reconnected gets the whole time again, since it may have to wait for the
// majority of the view group.
func (p *presence) expired(short bool, now time.Time) bool {
	limit, since := minAbsence, p.since
	if !short {
		limit += p.away
		if p.heard() {
			since = p.lastMessageAt
		}
	}
	return now.Sub(since) > limit || !p.until.IsZero() && now.After(p.until)
}

// acts reports whether the peers propose the changes of the view.
func (p *presence) acts(now time.Time) bool {
	return p.silent() && now.Sub(p.since) >= actAfter
}

// asks reports whether this peer must ask the submitter now whether the job is over, if the two are connected
// again.
func (p *presence) asks(now time.Time) bool {
	if p.state == connected {
		p.askPause = 0
		return false
	}
	return !now.Before(p.askAt)
}

// askedNow records a question whether the job is over. The intervals between the questions grow.
func (p *presence) askedNow(now time.Time) {
	p.askPause = min(max(tickPeriod, 2*p.askPause), maxAskPause)
	p.askAt = now.Add(p.askPause)
}

const (
	// startTimeout is how long a submitter may be silent after staging. It is many times the interval at
	// which the submitter reports that other peers still stage.
	startTimeout = 2 * time.Minute
	// maxStaged bounds the total time between staging and Start, whatever the submitter reports.
	maxStaged = time.Hour
)

// neglects returns an error if the submitter of a staged job is connected and silent for too long, or delays
// Start for too long. Slots are not reserved forever.
func (p *presence) neglects(now time.Time) error {
	switch {
	case now.Sub(p.lastMessageAt) > startTimeout:
		return fmt.Errorf("no message from the submitter for %v after staging", startTimeout)
	case now.Sub(p.stagedAt) > maxStaged:
		return fmt.Errorf("the submitter has not started the job for %v after staging", maxStaged)
	}
	return nil
}
