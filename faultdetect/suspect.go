package faultdetect

// judge asks suspects, and fails those that have been asked in vain for a
// period. Only the beginning of a period makes new suspects of the silent.
func (d *Detector) judge(out *Output, periodBegins bool) {
	for i := range d.members {
		m := &d.members[i]
		if m.state == Live && periodBegins && d.silence(i) >= Rounds(d.n) && i != d.self {
			d.suspect(out, i, d.periods-Rounds(d.n)+1)
		}
		if m.state != Suspect {
			continue
		}
		if m.asked == TicksPerPeriod {
			d.enter(out, i, Failed)
			continue
		}
		m.asked++
		out.Send = append(out.Send, d.message(i, Ping))
	}
}

// suspect begins to doubt member i, until it has been heard of in the period
// refute or later.
func (d *Detector) suspect(out *Output, i, refute int) {
	d.members[i].asked = 0
	d.members[i].refute = refute
	d.enter(out, i, Suspect)
}

func (d *Detector) enter(out *Output, i int, s State) {
	d.members[i].state = s
	out.Verdicts = append(out.Verdicts, Verdict{Member: i, State: s, Silence: d.silence(i)})
}

// askAnew gives all suspects a whole period again. Their answers may lie
// unread where this member, stopped or starved, has not yet come to look.
func (d *Detector) askAnew() {
	for i := range d.members {
		d.members[i].asked = 0
	}
}

// Report says that somebody has reason to think that a member is silent, such
// as a connection that closed. It is asked at once; it is failed unless it
// answers within a period, or news of it comes that are younger than the
// report.
func (d *Detector) Report(member int) Output {
	var out Output
	if member < 0 || member >= d.n || member == d.self || d.members[member].state != Live {
		return out
	}
	d.suspect(&out, member, d.periods+1)
	out.Send = append(out.Send, d.message(member, Ping))
	return out
}
