package lead

import "time"

const (
	// minLead is the accumulated lead that a replica reports: after 0.5 s at the earliest, unless
	// the lead is clear (clearPart). A change of master costs a round of messages.
	minLead = 400 * time.Millisecond
	// maxLead is the limit of the doubling of minLead.
	maxLead = minLead << 12
	// clearPart is the divisor of the needed lead for a lead that is statistically clear. A lead is
	// clear if the measure of spells reaches clarity, which grows with the needed lead. Spells of
	// equal machines reach it with a probability below exp(-clarity²/2), or one in 3,000.
	clearPart = 10
	clarity   = 4
	// maxCounted is the maximum time that one answer can cover, so that a master does not count as
	// slow after a single delay.
	maxCounted = 100 * time.Millisecond
	// answerTimeout is the time after which a replica without an answer asks again. An answer may be
	// lost with its channel.
	answerTimeout = time.Second
)

// A Meter is a replica's measurement of its lead over its master. The process must call Step for each
// step of its program, also while it is the master itself. A Meter is a pure value. Its zero value is
// not usable: see NewMeter.
type Meter struct {
	own history

	question uint64        // number of the last question
	asked    time.Duration // time of the last question; 0 if no answer is pending
	answered bool          // an answer of the present master has arrived
	known    uint64        // number of steps that the master had taken at that answer
	counted  time.Duration // time up to which the lead has been counted
	clocks   comparison

	lead   time.Duration // accumulated lead, at least 0
	need   time.Duration // lead to report
	spells spells
}

// NewMeter returns a Meter of a process that has taken no step.
func NewMeter() Meter { return Meter{need: minLead} }

// Step records a step of the program.
func (m *Meter) Step(now time.Duration) { m.own.step(now) }

// Steps returns the number of steps of the program.
func (m *Meter) Steps() uint64 { return m.own.last.steps }

// Resume sets the number of steps, for a program that resumes from a checkpoint.
func (m *Meter) Resume(steps uint64, now time.Duration) { m.own = history{last: mark{steps, now}} }

// Answer returns the answer to a question of another replica.
func (m *Meter) Answer(now time.Duration) Answer { return Answer{now, m.own.appendTo(nil)} }

// Waits reports whether an answer of the master is pending.
func (m *Meter) Waits() bool { return m.asked != 0 }

// Level reports whether the last answer shows the master at the present step of this process.
func (m *Meter) Level() bool { return m.known == m.own.last.steps }

// Tick returns the number of the question to ask the master now, or 0 to ask none.
func (m *Meter) Tick(now time.Duration) (question uint64) {
	if m.answered && m.Level() || m.Steps() == 0 || m.asked != 0 && now-m.asked < answerTimeout {
		return 0
	}
	m.question++
	m.asked = now
	return m.question
}

// Receive processes the master's answer to a question, and reports whether this process should report
// that it is ahead. The answer belongs to the Meter from now on.
func (m *Meter) Receive(question uint64, a Answer, now time.Duration) (ahead bool) {
	if m.asked == 0 || question != m.question {
		return false
	}
	m.clocks.take(m.asked, a.now, now)
	m.asked = 0
	if m.answered {
		m.count(a, now)
	}
	m.answered, m.known, m.counted = true, a.steps(), m.clocks.own(a.now)
	if !m.leads() {
		return false
	}
	m.lead, m.spells = 0, spells{}
	m.slow()
	return true
}

// leads reports whether the lead is large or clear enough to report.
func (m *Meter) leads() bool {
	grown := float64(m.need) / float64(minLead)
	return m.lead >= m.need || m.lead >= m.need/clearPart && m.spells.clear(clarity*clarity*grown)
}

// count accounts for the time from the last counted moment up to the answer.
func (m *Meter) count(a Answer, now time.Duration) {
	to := min(m.clocks.own(a.now), now)
	own, master := m.own.appendTo(nil), a.marks
	for i := range master { // within the uncertainty, assume that the master was earlier
		master[i].at = m.clocks.own(master[i].at) - m.clocks.doubt()
	}
	from := max(m.counted, to-maxCounted, own[0].at, master[0].at)
	if from >= to {
		return
	}
	m.spells.fade(to - from)
	m.lead -= (to - from) / 5
	for leader, lasts := range compare(own, master, from, to) {
		m.spells.take(leader, lasts)
		switch leader {
		case replicaAhead:
			m.lead += lasts
		case masterAhead:
			m.lead -= 2 * lasts
		}
	}
	m.lead = max(0, m.lead)
}

// slow doubles the lead that the next report needs.
func (m *Meter) slow() { m.need = min(2*m.need, maxLead) }

// MasterChanged resets the measurement for a new master of the rank. demoted reports that this process
// was master before.
func (m *Meter) MasterChanged(demoted bool) {
	m.asked, m.answered, m.lead, m.spells, m.clocks = 0, false, 0, spells{}, comparison{}
	if demoted {
		m.slow()
	}
}
