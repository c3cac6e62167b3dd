package faultdetect

import "time"

// A link holds the measurements of the messages from another member.
type link struct {
	deviation time.Duration // mean deviation of the arrival times of tables from the expected ones
	rtt       time.Duration // slowest recent round trip, or 0 before the first answer
	pinged    time.Duration // time of the Ping whose answer is measured, or 0 between measurements
	tables    int           // number of tables so far
}

// answered uses a Pong as a sample of the round trip. Slow samples decay slowly, because the value serves
// as a timeout. A sample above one period is discarded: a question or an answer was lost, and the Pong
// answers another question.
func (l *link) answered(now, period time.Duration) {
	if l.pinged == 0 {
		return
	}
	if sample := now - l.pinged; sample <= period {
		l.rtt = max(sample, (7*l.rtt+sample)/8)
	}
	l.pinged = 0
}

// links holds the link from each member that has sent a table.
type links map[int]*link

// rtt returns the round trip of a member, or 0 if it is unknown.
func (ls links) rtt(member int) time.Duration {
	if l := ls[member]; l != nil {
		return l.rtt
	}
	return 0
}

// expected is a table that should arrive. In each round, a member can compute its sender.
type expected struct {
	round uint64
	from  int
}

const (
	// maxDue bounds the expected tables. Members may be as many rounds apart as their starts may differ,
	// plus a reserve.
	maxDue = 3 * startGrace

	// measureEvery is the number of tables between two measurements of a member's round trip.
	measureEvery = 16
)

// expect adds the table of the next round to the expected ones, because other members may begin it before
// this one.
func (d *Detector) expect() {
	if d.mode != Fast {
		return
	}
	round := d.heartbeat + 1
	if from, ok := d.ring.source(d.targets, d.self, round); ok {
		d.due = append(d.due, expected{round, from})
	}
	d.due = d.due[max(0, len(d.due)-maxDue):]
}

// expectOthers recomputes the senders of expected tables after a member has failed.
func (d *Detector) expectOthers() {
	kept := d.due[:0]
	for _, e := range d.due {
		if from, ok := d.ring.source(d.targets, d.self, e.round); ok {
			kept = append(kept, expected{e.round, from})
		}
	}
	d.due = kept
}

// suspectLate makes the senders of missing tables suspect. If news from other members shows that a
// sender has reached the round, it is live and only its table was lost.
func (d *Detector) suspectLate(out *Output) {
	kept := d.due[:0]
	for _, e := range d.due {
		switch m := &d.members[e.from]; {
		case m.state != Live || !m.met || m.heartbeat >= e.round:
		case d.now < d.deadline(e):
			kept = append(kept, e)
		default:
			d.suspect(out, suspicion{member: e.from, why: missing, refute: e.round, span: d.probeTime(e)})
		}
	}
	d.due = kept
}

// deadline returns when a table is late: its expected time (dueAt) plus an allowance. The allowance is
// four times the mean deviation of the link, as in TCP's retransmission timer (Jacobson 1988). It is at
// least a quarter of a period and at most one period. It is longer if this member's health is reduced.
func (d *Detector) deadline(e expected) time.Duration {
	allowance := d.period / 4
	if l := d.links[e.from]; l != nil {
		allowance = min(max(allowance, 4*l.deviation), d.period)
	}
	return d.dueAt(e) + d.health.scale(allowance)
}

// probeTime returns how long a member whose table is missing is probed: until the tolerated hang is over, but
// at least for one period. The hang counts from when the table was due. The probe time is longer if this
// member's health is reduced.
func (d *Detector) probeTime(e expected) time.Duration {
	hang := d.dueAt(e) + d.hang - d.now
	if l := d.links[e.from]; l != nil {
		hang += 4 * l.deviation // usual delay of its tables
	}
	doubt := d.health.scale(d.period) - d.period
	return max(d.period, hang) + doubt + 2*d.links.rtt(e.from)
}

// dueAt returns when a table should arrive, according to its sender's heartbeats so far. A table that was
// due during a stall of this member counts as due at the end of the stall.
func (d *Detector) dueAt(e expected) time.Duration {
	return max(d.members[e.from].phase+time.Duration(e.round-d.offset)*d.period, d.health.woke)
}

// began returns when the sender of a heartbeat that arrives now had the Offset, in this member's time.
// The result is too late by the transit time of the message.
func (d *Detector) began(heartbeat uint64) time.Duration {
	return d.now - time.Duration(int64(heartbeat-d.offset))*d.period
}

// learnPhase updates the phase of member i from news. News cannot arrive before the event that it
// reports, so the earliest news is the most accurate. The phase may move slowly to later times, for clocks
// that drift. If i itself sends tables to this member, their mean is more accurate, and measure sets the
// phase.
func (d *Detector) learnPhase(i int, heartbeat uint64) {
	m, began := &d.members[i], d.began(heartbeat)
	switch {
	case !m.met:
		m.phase = began
	case d.links[i] == nil:
		m.phase = min(m.phase+d.period/64, began)
	case began < m.phase-d.period/2: // it has caught up by a heartbeat
		m.phase = began
	}
}

// measure uses the arrival of a table of member i as a sample of its timing. From time to time it sends a
// Ping, to measure the round trip.
func (d *Detector) measure(out *Output, i int, heartbeat uint64) {
	if !d.plausible(heartbeat) {
		return
	}
	m, began := &d.members[i], d.began(heartbeat)
	l := d.links[i]
	if l == nil {
		l = &link{deviation: d.period / 16}
		d.links[i] = l
		m.phase = began
	}
	off := min(began-m.phase, d.period/2)
	if off < -d.period/2 {
		m.phase, off = began, 0
	}
	m.phase += off / 4
	l.deviation += (max(off, -off) - l.deviation) / 4
	if l.tables%measureEvery == 0 && d.mode == Fast {
		l.pinged = d.now
		out.Send = append(out.Send, d.message(i, Ping))
	}
	l.tables++
}
