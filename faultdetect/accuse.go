package faultdetect

import (
	"math/bits"
	"slices"
)

// sentAccusation is an accusation that this member has passed on along one tree.
type sentAccusation struct {
	about int
	tree  Tree
	reach int
	until int // value of periods until which it is not passed on again
}

// quiet is the number of periods in which an accusation is not repeated. So a member that repeatedly
// accuses a live member causes at most one probe per quiet periods at each other member.
const repeatAfter = 2

// accuse tells all other members that a member has failed, along both trees.
func (d *Detector) accuse(out *Output, about int) {
	for _, tree := range []Tree{Forward, Backward} {
		d.pass(out, about, tree, d.n-1)
	}
}

// pass sends an accusation to the next reach members in a tree's order. It sends to the member 2^k
// positions on, which passes it to the members beyond. In the same way it covers the members before that
// one, with 2^(k-1) and so on. So all members have the accusation after ⌈log₂ n⌉ steps (the binary tree
// of the seed). The tree uses the same connections as the tables. Failed members and the accused one are
// skipped. pass returns false if the same accusation was passed on recently with at least this reach.
func (d *Detector) pass(out *Output, about int, tree Tree, reach int) bool {
	p := sentAccusation{about, tree, reach, d.periods + repeatAfter}
	i := slices.IndexFunc(d.accusations, func(q sentAccusation) bool { return q.about == about && q.tree == tree })
	switch {
	case i < 0:
		d.accusations = append(d.accusations, p)
	case d.accusations[i].reach < reach:
		d.accusations[i] = p
	default:
		return false
	}
	r := d.ring.without(about)
	for reach = min(reach, r.live()-1); reach > 0; {
		hop := 1 << (bits.Len(uint(reach)) - 1)
		m := Message{From: d.self, Kind: Accuse, Heartbeat: d.heartbeat, About: about, Tree: tree, Reach: reach - hop}
		if m.To = r.from(d.self, hop); tree == Backward {
			m.To = r.from(d.self, -hop)
		}
		out.Send = append(out.Send, m)
		reach = hop - 1
	}
	return true
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

// A probeRequest is another member's request to probe a third one.
type probeRequest struct {
	about, asker int
	until        int // value of periods
}

// maxProbeRequests bounds the questions that other members can make this member remember.
const maxProbeRequests = 1024

// handleProbeRequest asks a member on behalf of another. It answers the requesting member at once, as a
// sign of life.
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
	q := probeRequest{about: m.About, asker: m.From, until: d.periods + repeatAfter}
	i := slices.IndexFunc(d.probeRequests, func(p probeRequest) bool { return p.about == q.about && p.asker == q.asker })
	switch {
	case i >= 0:
		d.probeRequests[i] = q
	case len(d.probeRequests) < maxProbeRequests:
		d.probeRequests = append(d.probeRequests, q)
	default:
		return
	}
	out.Send = append(out.Send, d.message(m.About, Ping))
}

// confirmLive tells the members that asked about a member that it has just been heard.
func (d *Detector) confirmLive(out *Output, about int) {
	d.probeRequests = slices.DeleteFunc(d.probeRequests, func(q probeRequest) bool {
		if q.about != about {
			return false
		}
		m := d.message(q.asker, Confirm)
		m.About = about
		out.Send = append(out.Send, m)
		return true
	})
}

// handleConfirmation accepts another member's statement that a suspect is live.
func (d *Detector) handleConfirmation(out *Output, m Message) {
	if q := d.suspicionOf(m.About); q != nil && q.asked > 1 {
		d.members[m.About].sawAlive(d.periods)
		d.enter(out, m.About, Live)
	}
}

// dropExpired drops expired accusations and questions.
func (d *Detector) dropExpired() {
	d.accusations = slices.DeleteFunc(d.accusations, func(p sentAccusation) bool { return p.until <= d.periods })
	d.probeRequests = slices.DeleteFunc(d.probeRequests, func(q probeRequest) bool { return q.until <= d.periods })
}
