package faultdetect

import (
	"fmt"
	"time"
)

// Receive processes a message of another member; now is the time since New. The caller must have
// authenticated the sender, because From is trusted. A message that no correct member sends is rejected
// as a whole with an error, and changes nothing. Messages of failed members are ignored.
func (d *Detector) Receive(now time.Duration, m Message) (Output, error) {
	if err := m.check(d.self, d.n); err != nil {
		return Output{}, fmt.Errorf("faultdetect: message of member %d: %w", m.From, err)
	}
	var out Output
	d.now = max(now, d.now)
	if d.members[m.From].state == Failed {
		return out, nil
	}
	d.signOfLife(&out, m)
	switch m.Kind {
	case Table:
		d.measure(&out, m.From, m.Heartbeat)
		for i, h := range m.Table {
			d.learn(&out, i, h)
		}
	case Ping:
		out.Send = append(out.Send, d.message(m.From, Pong))
	case Pong:
		if l := d.links[m.From]; l != nil {
			l.answered(d.now, d.period)
		}
	case Ask:
		d.handleProbeRequest(&out, m)
	case Confirm:
		d.handleConfirmation(&out, m)
	case Accuse:
		d.handleAccusation(&out, m)
	}
	return out, nil
}

// check rejects messages that no correct member sends to member self of n.
func (m Message) check(self, n int) error {
	third := m.Kind == Ask || m.Kind == Confirm || m.Kind == Accuse
	switch {
	case m.From < 0 || m.From >= n || m.From == self:
		return fmt.Errorf("sender is not another member of %d", n)
	case m.To != self:
		return fmt.Errorf("addressed to member %d", m.To)
	case m.Kind < Table || m.Kind > Accuse:
		return fmt.Errorf("unknown kind %d", m.Kind)
	case m.Kind == Table && len(m.Table) != n:
		return fmt.Errorf("table of %d heartbeats in a group of %d", len(m.Table), n)
	case m.Kind != Table && len(m.Table) != 0:
		return fmt.Errorf("table of %d heartbeats in a message of kind %d", len(m.Table), m.Kind)
	case m.About < 0 || m.About >= n || third && m.About == m.From || !third && m.About != 0:
		return fmt.Errorf("about member %d of %d", m.About, n)
	case m.Tree > Backward || m.Reach < 0 || m.Reach >= n || m.Kind != Accuse && (m.Tree != 0 || m.Reach != 0):
		return fmt.Errorf("tree %d, reach %d in a group of %d", m.Tree, m.Reach, n)
	}
	return nil
}

// signOfLife treats a message as a sign of life of its sender at this time, regardless of its heartbeat. A
// member that was reported in this period is cleared only by an answer, since other messages may have
// been sent before the report.
func (d *Detector) signOfLife(out *Output, m Message) {
	if m.Heartbeat >= d.heartbeat+2 { // a difference of one only means another phase of the period
		d.behind = true
	}
	if from := &d.members[m.From]; !from.met && d.plausible(m.Heartbeat) {
		from.phase = d.began(m.Heartbeat)
	}
	d.learn(out, m.From, m.Heartbeat)
	d.members[m.From].sawAlive(d.periods)
	if q := d.suspicionOf(m.From); q != nil && (d.periods >= q.direct || m.Kind == Pong) {
		d.enter(out, m.From, Live)
	}
	for _, q := range d.suspicions {
		q.witness = q.witness || q.member != m.From
	}
	d.confirmLive(out, m.From)
}

// learn merges one heartbeat of member i into the table. Since counters are aligned, the difference to
// this member's own heartbeat is the heartbeat's age. It indicates when i was alive rather than when the
// news arrived.
//
// News of this member itself is ignored, and failed is final. A heartbeat too far ahead is rejected. If
// it were true, this member would lag so far behind that the others would have failed it. So it must be
// false, and would hide the true heartbeats for a long time.
func (d *Detector) learn(out *Output, i int, heartbeat uint64) {
	m := &d.members[i]
	if i == d.self || m.state == Failed || heartbeat <= m.heartbeat || !d.plausible(heartbeat) {
		return
	}
	d.learnPhase(i, heartbeat)
	m.heartbeat = heartbeat
	age := 0
	if heartbeat < d.heartbeat {
		age = int(min(d.heartbeat-heartbeat, uint64(d.periods+startGrace)))
	}
	m.sawAlive(d.periods - age)
	if q := d.suspicionOf(i); q != nil && heartbeat >= q.refute {
		d.enter(out, i, Live)
	}
}

// handleAccusation passes an accusation on and asks the accused member for a short time. So a member that
// lies or is itself disconnected cannot make others fail a member that answers.
func (d *Detector) handleAccusation(out *Output, m Message) {
	if m.About == d.self || !d.pass(out, m.About, m.Tree, m.Reach) {
		return
	}
	if q := d.suspicionOf(m.About); q != nil {
		q.until = min(q.until, d.now+d.shortProbeTime(m.About))
		q.witness = true
		return
	}
	if d.members[m.About].state != Live {
		return
	}
	d.suspect(out, suspicion{
		member: m.About, why: accused, refute: d.firstImpossible(), direct: d.periods + 1,
		span: d.shortProbeTime(m.About), witness: true,
	})
	d.probe(out, d.suspicionOf(m.About))
}

// handleProbeRequest asks a member on behalf of another. The requesting member gets an answer at once, as
// a sign of life.
func (d *Detector) handleProbeRequest(out *Output, m Message) {
	out.Send = append(out.Send, d.message(m.From, Pong))
	if m.About == d.self {
		return
	}
	if d.members[m.About].state == Failed {
		known := d.message(m.From, Accuse)
		known.About = m.About
		out.Send = append(out.Send, known)
		return
	}
	if d.probeRequests.add(probeRequest{about: m.About, asker: m.From, until: d.periods + repeatAfter}) {
		out.Send = append(out.Send, d.message(m.About, Ping))
	}
}

// confirmLive tells the members that asked about a member that it has just been heard.
func (d *Detector) confirmLive(out *Output, about int) {
	for _, asker := range d.probeRequests.take(about) {
		m := d.message(asker, Confirm)
		m.About = about
		out.Send = append(out.Send, m)
	}
}

// handleConfirmation accepts another member's statement that a suspect is live.
func (d *Detector) handleConfirmation(out *Output, m Message) {
	if q := d.suspicionOf(m.About); q != nil && q.asked > 1 {
		d.members[m.About].sawAlive(d.periods)
		d.enter(out, m.About, Live)
	}
}

// plausible reports whether a correct member may have this heartbeat.
func (d *Detector) plausible(heartbeat uint64) bool {
	return heartbeat >= d.offset && heartbeat <= d.heartbeat+d.slack()
}

// slack returns how far a heartbeat may be ahead of this member's own: the longest silence that the
// others tolerate, plus the latest start.
func (d *Detector) slack() uint64 { return uint64(d.suspectAfter() + 1 + startGrace) }
