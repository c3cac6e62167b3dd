package faultdetect

import (
	"slices"
	"time"
)

// why is the reason why a member is suspect.
type why byte

const (
	silent   why = iota // no news of it for longer than news may take
	missing             // a table from it is late
	reported            // the caller has a reason, such as a closed connection
	accused             // another member reports that it has failed
)

// A suspicion is the probing of one suspect, until it is live again or failed.
type suspicion struct {
	member  int
	why     why
	refute  uint64        // least heartbeat that proves the member live
	direct  int           // value of periods from which on any message of the member proves it live
	span    time.Duration // duration of the suspicion
	until   time.Duration // time at which the member is failed
	asked   int           // number of questions so far
	turn    int           // selects the members that probe indirectly
	witness bool          // another member was heard meanwhile, so the fault is not this member's own
}

// suspectSilent makes members suspect if there was no news of them for too long.
func (d *Detector) suspectSilent(out *Output) {
	limit := d.suspectAfter()
	for i := range d.members {
		if d.members[i].state == Live && d.silence(i) >= limit && i != d.self {
			oldest := d.heartbeat + 1 - min(d.heartbeat, uint64(limit))
			d.suspect(out, suspicion{member: i, why: silent, refute: oldest, span: d.period})
		}
	}
}

// suspect starts to probe a live member.
func (d *Detector) suspect(out *Output, q suspicion) {
	q.until = d.now + q.span
	q.turn = int(d.heartbeat % uint64(max(1, HalfRounds(d.n))))
	if l := d.links[q.member]; l != nil {
		l.pinged = 0 // with several questions, an answer cannot be assigned to one of them (Karn)
	}
	d.suspicions = append(d.suspicions, &q)
	d.enter(out, q.member, Suspect)
}

func (d *Detector) enter(out *Output, i int, s State) {
	d.members[i].state = s
	out.Verdicts = append(out.Verdicts, Verdict{Member: i, State: s, Silence: d.silence(i), RoundTrip: d.links.rtt(i)})
	if s != Suspect {
		d.suspicions = slices.DeleteFunc(d.suspicions, func(q *suspicion) bool { return q.member == i })
	}
	if s == Failed {
		d.ring = d.ring.without(i)
		d.expectOthers()
	}
}

func (d *Detector) suspicionOf(i int) *suspicion {
	if d.members[i].state != Suspect {
		return nil
	}
	for _, q := range d.suspicions {
		if q.member == i {
			return q
		}
	}
	return nil
}

// probeSuspects asks the suspects, and fails those whose time is over.
func (d *Detector) probeSuspects(out *Output) {
	for _, q := range slices.Clone(d.suspicions) {
		if d.now >= q.until {
			d.conclude(out, q)
			continue
		}
		d.probe(out, q)
	}
}

// probe sends a ping to a suspect. Every second time it also probes it through two other members.
func (d *Detector) probe(out *Output, q *suspicion) {
	out.Send = append(out.Send, d.message(q.member, Ping))
	q.asked++
	if q.asked%2 != 0 {
		return
	}
	for _, to := range d.helpers(q) {
		m := d.message(to, Ask)
		m.About = q.member
		out.Send = append(out.Send, m)
	}
}

// helpers returns two members through which a suspect is asked. It selects targets of tables, because
// there are connections to them.
func (d *Detector) helpers(q *suspicion) (to []int) {
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

// conclude fails a suspect, and accuses it if its table was missing or it was reported. If a table was
// missing and this member has heard from no other member during the suspicion, the fault may be its own. In
// a group of more than two it then asks again, through other members, for as long as gossip would have
// waited.
func (d *Detector) conclude(out *Output, q *suspicion) {
	if q.why == missing && !q.witness && d.ring.live() > 2 && d.silence(q.member) <= d.suspectAfter() {
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

// Report records a reason to believe that a member is silent, such as a closed connection. The member is
// asked at once, and failed unless it answers in time, or news of it that is newer than the report
// arrives in time. In mode Gossip the time is slightly more than a period; in mode Fast it is a short time
// plus the tolerated hang.
func (d *Detector) Report(member int) Output {
	span := d.period + d.period/TicksPerPeriod
	if d.mode == Fast {
		span = d.shortProbeTime(member) + d.hang
	}
	return d.report(member, span)
}

// Silent is like Report for a member that is known to have been silent for some time, which counts as
// part of the tolerated hang. The member is probed for at least one period.
func (d *Detector) Silent(member int, since time.Duration) Output {
	span := max(d.health.scale(d.period)+2*d.links.rtt(member), d.hang-since)
	if member >= 0 && member < d.n && member != d.self {
		if q := d.suspicionOf(member); q != nil { // its hang already began earlier
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
	d.suspect(&out, suspicion{member: member, why: reported, refute: d.firstImpossible(), direct: d.periods + 1, span: span})
	d.probe(&out, d.suspicionOf(member))
	return out
}

// firstImpossible returns the least heartbeat that no member can have had yet. Periods of members begin up
// to one period apart, so a heartbeat one ahead of this member's may be as old as its own.
func (d *Detector) firstImpossible() uint64 { return d.heartbeat + 2 }

// shortProbeTime returns how long to probe a member that another member or the caller has reported.
func (d *Detector) shortProbeTime(i int) time.Duration {
	return d.health.scale(d.period/4) + 2*d.links.rtt(i)
}

// gone records that a member is known to have failed, because its end was observed. The other members are
// told.
func (d *Detector) gone(member int) Output {
	var out Output
	if member < 0 || member >= d.n || member == d.self || d.members[member].state == Failed {
		return out
	}
	d.enter(&out, member, Failed)
	d.accuse(&out, member)
	return out
}

// accuse tells all other members that a member has failed, along both trees.
func (d *Detector) accuse(out *Output, about int) {
	for _, tree := range []Tree{Forward, Backward} {
		d.pass(out, about, tree, d.n-1)
	}
}

// pass sends an accusation to the next reach members in a tree's order. It returns false if the same
// accusation was passed on recently with at least this reach.
func (d *Detector) pass(out *Output, about int, tree Tree, reach int) bool {
	if !d.accusations.add(sentAccusation{about, tree, reach, d.periods + repeatAfter}) {
		return false
	}
	for _, m := range d.ring.accusationsFrom(d.self, about, tree, reach) {
		m.Heartbeat = d.heartbeat
		out.Send = append(out.Send, m)
	}
	return true
}
