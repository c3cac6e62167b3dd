package faultdetect

import "time"

// A link is what a member learns of the way to it from one whose tables it gets.
type link struct {
	deviation time.Duration // mean, of when the tables come from when they should
	rtt       time.Duration // slowest answer lately; 0 unknown
	pinged    time.Duration // when the question was sent that measures it; 0 none
	tables    int           // so far
}

// expected is a table that is to come: in a round everybody knows from whom.
type expected struct {
	round uint64
	from  int
}

const (
	// maxDue bounds the tables that are waited for: members may be as many
	// rounds apart as they may start late, and then some.
	maxDue = 3 * startGrace

	// measureEvery is after how many tables of a member its round trip is
	// measured again.
	measureEvery = 16
)

// expect notes from whom a table is to come in the next round: others may begin
// it before this member does.
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

// expectOthers is for when a member has failed: tables go elsewhere from now on.
func (d *Detector) expectOthers() {
	kept := d.due[:0]
	for _, e := range d.due {
		if from, ok := d.ring.source(d.targets, d.self, e.round); ok {
			kept = append(kept, expected{e.round, from})
		}
	}
	d.due = kept
}

// doubtTheLate suspects the senders of tables that are missing. A sender that
// news from others show to have reached the round is live; its table was lost.
func (d *Detector) doubtTheLate(out *Output) {
	kept := d.due[:0]
	for _, e := range d.due {
		switch m := &d.members[e.from]; {
		case m.state != Live || !m.met || m.heartbeat >= e.round:
		case d.now < d.deadline(e):
			kept = append(kept, e)
		default:
			d.suspect(out, inquiry{member: e.from, why: missing, refute: e.round, span: d.askFor(e)})
		}
	}
	d.due = kept
}

// deadline is when a table is late: when it should come by what its sender's
// heartbeats have told so far, or when this member woke, and an allowance. The allowance is four times the mean deviation of that link, as in
// TCP's retransmission timer (Jacobson 1988), at least a quarter of a period,
// at most a whole one; and more when this member has reason to doubt itself.
func (d *Detector) deadline(e expected) time.Duration {
	allowance := d.period / 4
	if l := d.links[e.from]; l != nil {
		allowance = min(max(allowance, 4*l.deviation), d.period)
	}
	return d.dueAt(e) + d.health.scale(allowance)
}

// askFor is how long a member is asked whose table is missing: until the tolerated hang is over,
// which began before the table was due, and for a period at least; longer when this member has reason
// to doubt itself.
func (d *Detector) askFor(e expected) time.Duration {
	hang := d.dueAt(e) + d.hang - d.now
	if l := d.links[e.from]; l != nil {
		hang += 4 * l.deviation // tables come so late in any case
	}
	doubt := d.health.scale(d.period) - d.period
	return max(d.period, hang) + doubt + 2*d.rtt(e.from)
}

// dueAt is when a table should come: by what its sender's heartbeats have told so far, or when
// this member woke.
func (d *Detector) dueAt(e expected) time.Duration {
	return max(d.members[e.from].phase+time.Duration(e.round-d.offset)*d.period, d.health.woke)
}

func (d *Detector) rtt(i int) time.Duration {
	if l := d.links[i]; l != nil {
		return l.rtt
	}
	return 0
}

// began is when, in this member's time, the sender of a heartbeat that has come
// now would have had the Offset. It is too late by what the message took.
func (d *Detector) began(heartbeat uint64) time.Duration {
	return d.now - time.Duration(int64(heartbeat-d.offset))*d.period
}

// learnPhase takes from news of member i when its periods begin. News do not
// come before what they tell, so the earliest says most; it may be a little
// later each time, for clocks that drift. Where tables come from i itself, their
// mean is better.
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

// measure takes a table of member i as a sample of when its tables come. Now
// and then it asks, to learn the round trip.
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

// answered takes a Pong of member i as a sample of its round trip. A slow one is
// remembered for long: it is there to be patient by. What takes more than a
// period answers another question: the first was lost, or this one.
func (d *Detector) answered(i int) {
	l := d.links[i]
	if l == nil || l.pinged == 0 {
		return
	}
	if sample := d.now - l.pinged; sample <= d.period {
		l.rtt = max(sample, (7*l.rtt+sample)/8)
	}
	l.pinged = 0
}
