package faultdetect

import (
	"math/bits"
	"slices"
)

// passing is an accusation that this member has passed on along one tree.
type passing struct {
	about int
	tree  Tree
	reach int
	until int // value of periods until which the same is not passed on again
}

// quiet is for how many periods an accusation is not repeated. So a member that
// accuses a live one over and over costs everybody a question in as many.
const quiet = 2

// accuse tells all others that a member has failed, along both trees.
func (d *Detector) accuse(out *Output, about int) {
	for _, tree := range []Tree{Forward, Backward} {
		d.pass(out, about, tree, d.n-1)
	}
}

// pass brings an accusation to the next members in a tree's order, reach of
// them: to the one 2^k on, which brings it to those beyond, and likewise to those
// before it, 2^(k-1) on and so forth. So everybody has it in ⌈log₂ n⌉ steps, and
// it goes where tables go, on connections that there are (the seed's binary
// tree). Who has failed is left out. It returns false if the same was passed on
// as far lately.
func (d *Detector) pass(out *Output, about int, tree Tree, reach int) bool {
	p := passing{about, tree, reach, d.periods + quiet}
	i := slices.IndexFunc(d.spread, func(q passing) bool { return q.about == about && q.tree == tree })
	switch {
	case i < 0:
		d.spread = append(d.spread, p)
	case d.spread[i].reach < reach:
		d.spread[i] = p
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

// hearAccusation passes an accusation on and asks the accused briefly: a member
// that lies, or is itself cut off, fails nobody who answers.
func (d *Detector) hearAccusation(out *Output, m Message) {
	if m.About == d.self || !d.pass(out, m.About, m.Tree, m.Reach) {
		return
	}
	if q := d.inquiry(m.About); q != nil {
		q.until = min(q.until, d.now+d.brief(m.About))
		q.witness = true
		return
	}
	if d.members[m.About].state != Live {
		return
	}
	d.suspect(out, inquiry{
		member: m.About, why: accused, refute: d.unheard(), direct: d.periods + 1,
		span: d.brief(m.About), witness: true,
	})
	d.ask(out, d.inquiry(m.About))
}

// A question is one that another member wants to have asked.
type question struct {
	about, asker int
	until        int // value of periods
}

// maxQuestions bounds what others can make this member remember.
const maxQuestions = 1024

// hearQuestion asks a member for another. The asker learns at once that it is
// heard.
func (d *Detector) hearQuestion(out *Output, m Message) {
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
	q := question{about: m.About, asker: m.From, until: d.periods + quiet}
	i := slices.IndexFunc(d.questions, func(p question) bool { return p.about == q.about && p.asker == q.asker })
	switch {
	case i >= 0:
		d.questions[i] = q
	case len(d.questions) < maxQuestions:
		d.questions = append(d.questions, q)
	default:
		return
	}
	out.Send = append(out.Send, d.message(m.About, Ping))
}

// vouch tells those who wanted to know that a member has just been heard.
func (d *Detector) vouch(out *Output, about int) {
	d.questions = slices.DeleteFunc(d.questions, func(q question) bool {
		if q.about != about {
			return false
		}
		m := d.message(q.asker, Vouch)
		m.About = about
		out.Send = append(out.Send, m)
		return true
	})
}

// hearVoucher believes that a suspect lives, as another has heard it.
func (d *Detector) hearVoucher(out *Output, m Message) {
	if q := d.inquiry(m.About); q != nil && q.asked > 1 {
		d.members[m.About].showsLife(d.periods)
		d.enter(out, m.About, Live)
	}
}

// forgetOld drops what is not to be remembered any longer.
func (d *Detector) forgetOld() {
	d.spread = slices.DeleteFunc(d.spread, func(p passing) bool { return p.until <= d.periods })
	d.questions = slices.DeleteFunc(d.questions, func(q question) bool { return q.until <= d.periods })
}
