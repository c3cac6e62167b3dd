package faultdetect

import (
	"slices"
	"time"
)

// why a member is suspect.
type why byte

const (
	silent   why = iota // no news of it came for as long as they may take
	missing             // a table from it did not come when it should
	reported            // the caller has a reason, such as a connection that closed
	accused             // another member says that it has failed
)

// An inquiry is the asking of one suspect, until it is live again or failed.
type inquiry struct {
	member  int
	why     why
	refute  uint64        // a heartbeat of it that proves it live
	direct  int           // value of periods from when any message of its own does
	span    time.Duration // how long it is asked
	until   time.Duration // when it is failed
	asked   int           // questions so far
	turn    int           // which others are asked to ask it
	witness bool          // somebody else has been heard meanwhile: the fault is not this member's
}

// doubtTheSilent suspects those of whom there were no news for too long.
func (d *Detector) doubtTheSilent(out *Output) {
	patience := d.patience()
	for i := range d.members {
		if d.members[i].state == Live && d.silence(i) >= patience && i != d.self {
			oldest := d.heartbeat + 1 - min(d.heartbeat, uint64(patience))
			d.suspect(out, inquiry{member: i, why: silent, refute: oldest, span: d.period})
		}
	}
}

// suspect begins to doubt a live member.
func (d *Detector) suspect(out *Output, q inquiry) {
	q.until = d.now + q.span
	q.turn = int(d.heartbeat % uint64(max(1, HalfRounds(d.n))))
	if l := d.links[q.member]; l != nil {
		l.pinged = 0 // of several questions it is not known which was answered (Karn)
	}
	d.inquiries = append(d.inquiries, &q)
	d.enter(out, q.member, Suspect)
}

func (d *Detector) enter(out *Output, i int, s State) {
	d.members[i].state = s
	out.Verdicts = append(out.Verdicts, Verdict{Member: i, State: s, Silence: d.silence(i), RoundTrip: d.rtt(i)})
	if s != Suspect {
		d.inquiries = slices.DeleteFunc(d.inquiries, func(q *inquiry) bool { return q.member == i })
	}
	if s == Failed {
		d.ring = d.ring.without(i)
		d.expectOthers()
	}
}

func (d *Detector) inquiry(i int) *inquiry {
	if d.members[i].state != Suspect {
		return nil
	}
	for _, q := range d.inquiries {
		if q.member == i {
			return q
		}
	}
	return nil
}

// inquire asks the suspects, and fails those that have been asked in vain.
func (d *Detector) inquire(out *Output) {
	for _, q := range slices.Clone(d.inquiries) {
		if d.now >= q.until {
			d.conclude(out, q)
			continue
		}
		d.ask(out, q)
	}
}

// ask asks a suspect, and from the second time on every other time through two
// others.
func (d *Detector) ask(out *Output, q *inquiry) {
	out.Send = append(out.Send, d.message(q.member, Ping))
	q.asked++
	if q.asked%2 != 0 {
		return
	}
	for _, to := range d.others(q) {
		m := d.message(to, Ask)
		m.About = q.member
		out.Send = append(out.Send, m)
	}
}

// others are two members through whom a suspect is asked: of those to whom
// tables go, so that there is a connection.
func (d *Detector) others(q *inquiry) (to []int) {
	r := d.ring.without(q.member)
	if r.live() < 2 {
		return nil
	}
	hop := 1 << q.turn
	for _, hops := range []int{hop, -hop} {
		if hops = modulo(hops, r.live()); hops == 0 {
			hops = 1
		}
		if i := r.from(d.self, hops); !slices.Contains(to, i) {
			to = append(to, i)
		}
	}
	return to
}

// conclude fails a suspect, unless this member has heard nobody else while it
// asked: then the fault may be its own, and it asks again, through others, for
// as long as gossip would have waited.
func (d *Detector) conclude(out *Output, q *inquiry) {
	if q.why == missing && !q.witness && d.ring.live() > 2 && d.silence(q.member) <= d.patience() {
		d.health.worsen()
		q.until = d.now + d.period
		q.turn = (q.turn + 1) % HalfRounds(d.n)
		return
	}
	d.enter(out, q.member, Failed)
	if q.why == missing || q.why == reported {
		d.accuse(out, q.member)
	}
}

// Report says that somebody has reason to think that a member is silent, such
// as a connection that closed. It is asked at once; it is failed unless it
// answers soon, or news of it come that are younger than the report.
func (d *Detector) Report(member int) Output {
	span := d.period + d.period/TicksPerPeriod
	if d.mode == Fast {
		span = d.brief(member) + d.hang
	}
	return d.report(member, span)
}

// Silent is like Report, of a member that is known to have been silent for some time: that counts as a
// part of the tolerated hang. It is asked for a period at least.
func (d *Detector) Silent(member int, since time.Duration) Output {
	span := max(d.health.scale(d.period)+2*d.rtt(member), d.hang-since)
	if member >= 0 && member < d.n && member != d.self {
		if q := d.inquiry(member); q != nil { // the hang that it is given anyway began before
			q.until = min(q.until, d.now+span)
		}
	}
	return d.report(member, span)
}

func (d *Detector) report(member int, span time.Duration) Output {
	var out Output
	if member < 0 || member >= d.n || member == d.self || d.members[member].state != Live {
		return out
	}
	d.suspect(&out, inquiry{member: member, why: reported, refute: d.unheard(), direct: d.periods + 1, span: span})
	d.ask(&out, d.inquiry(member))
	return out
}

// unheard is the least heartbeat that no member has had yet: their periods begin up
// to one apart, so one ahead of this member's may be as old as its own.
func (d *Detector) unheard() uint64 { return d.heartbeat + 2 }

// brief is for how long a member is asked about whom others know more.
func (d *Detector) brief(i int) time.Duration {
	return d.health.scale(d.period/4) + 2*d.rtt(i)
}

// Gone says that a member is known to have failed: its end was seen by who had
// it in hand. The others are told.
func (d *Detector) Gone(member int) Output {
	var out Output
	if member < 0 || member >= d.n || member == d.self || d.members[member].state == Failed {
		return out
	}
	d.enter(&out, member, Failed)
	d.accuse(&out, member)
	return out
}
