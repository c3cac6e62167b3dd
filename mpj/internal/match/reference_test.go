package match

import (
	"errors"
	"fmt"
	"slices"
)

// A spec is the source and the tag of a receive.
type spec struct {
	source int
	tag    int32
}

// A reference says which matches and proposals a process must have made, by the definition of matching. It looks at
// everything that has happened at the process, and keeps neither posted receives nor unexpected messages.
type reference struct {
	agrees  bool // receives from AnySource need an outcome
	decider bool
	posts   []spec
	arrived []Message

	// By post; the zero name if there is none:
	outcome, matched, proposed []name
}

var none name

// update adds the matches and proposals that have become due: first those of exact receives (M5), and then those of all
// receives, in the order of their posts (M2).
func (r *reference) update() {
	for i, n := range r.outcome {
		if n != none && r.matched[i] == none && r.isFree(n) && slices.ContainsFunc(r.arrived, n.isOf) {
			r.matched[i] = n
		}
	}
	for i := range r.posts {
		wild := r.needsOutcome(i)
		if r.matched[i] != none || r.outcome[i] != none || wild && (r.proposed[i] != none || !r.decider) {
			continue
		}
		for _, m := range r.arrived {
			n := m.name()
			if !r.mayTake(i, m) || !r.isFree(n) || wild && slices.Contains(r.proposed, n) {
				continue
			}
			switch { // the first message that fits, or none: M1, M6
			case r.isClaimed(i, m):
			case wild:
				r.proposed[i] = n
			default:
				r.matched[i] = n
			}
			break
		}
	}
}

// isClaimed reports whether a receive before i may take m (M4).
func (r *reference) isClaimed(i int, m Message) bool {
	for j := range i {
		if r.matched[j] == none && r.mayTake(j, m) && !(r.needsOutcome(i) && r.proposed[j] != none) {
			return true
		}
	}
	return false
}

func (r *reference) mayTake(i int, m Message) bool {
	if n := r.outcome[i]; n != none {
		return n == m.name()
	}
	s := r.posts[i]
	return (s.source == AnySource || s.source == m.Source) && (s.tag == AnyTag || s.tag == m.Tag)
}

func (r *reference) needsOutcome(i int) bool { return r.agrees && r.posts[i].source == AnySource }

// isFree reports whether no receive has taken the message.
func (r *reference) isFree(n name) bool { return !slices.Contains(r.matched, n) }

func (n name) isOf(m Message) bool { return n == m.name() }

// A process is a Box, with the record of what it has returned, and the reference that gets the same events.
type process struct {
	Box
	reference
	receives []*Recv
	// By post; the zero name if there is none:
	got, proposals []name
}

func newProcess(agrees, decider bool) *process {
	return &process{reference: reference{agrees: agrees, decider: decider}}
}

func (p *process) post(s spec) {
	i := len(p.receives)
	p.posts = append(p.posts, s)
	for _, names := range []*[]name{&p.outcome, &p.matched, &p.proposed, &p.got, &p.proposals} {
		*names = append(*names, none)
	}
	r := &Recv{Source: s.source, Tag: s.tag, Owner: i}
	if p.receives = append(p.receives, r); p.needsOutcome(i) {
		r.Wild = &Wild{Point: Point{Index: uint64(i)}}
	}
	m, result := p.Post(r, p.decider)
	p.record(r, m, result)
}

func (p *process) arrive(m Message) {
	p.arrived = append(p.arrived, m)
	r, m, result := p.Arrive(m, p.decider)
	p.record(r, m, result)
}

// decide gives post i its outcome.
func (p *process) decide(i int, n name) {
	p.outcome[i], p.proposed[i], p.proposals[i] = n, none, none
	if m, ok := p.Decide(p.receives[i], n.source, n.seq); ok {
		p.record(p.receives[i], m, Matched)
	}
	p.settle()
}

// promote makes the process the decider.
func (p *process) promote() {
	p.decider = true
	p.settle()
}

func (p *process) settle() {
	for {
		r, m, result := p.Next(p.decider)
		if result == Waits {
			return
		}
		p.record(r, m, result)
	}
}

func (p *process) record(r *Recv, m Message, result Result) {
	switch result {
	case Matched:
		p.got[r.Owner.(int)] = m.name()
	case Proposed:
		p.proposals[r.Owner.(int)] = m.name()
	}
}

// check compares what the Box has returned, and what it contains, with the reference.
func (p *process) check() error {
	p.update()
	if !slices.Equal(p.got, p.matched) || !slices.Equal(p.proposals, p.proposed) {
		return fmt.Errorf("matches %v and proposals %v, want %v and %v", p.got, p.proposals, p.matched, p.proposed)
	}
	return errors.Join(p.checkMessages(), p.checkPosts())
}

func (p *process) checkMessages() error {
	next := 0
	skip := func() {
		for next < len(p.arrived) && !p.isFree(p.arrived[next].name()) {
			next++
		}
	}
	for m := range p.Messages() {
		if skip(); next == len(p.arrived) || p.arrived[next].name() != m.name() {
			return fmt.Errorf("message %v is unexpected in the wrong place", m.name())
		}
		next++
		for r := range p.Posts() {
			if p.wilds == 0 && r.fits(m) {
				return fmt.Errorf("message %v waits, and post %v waits for it (M3)", m.name(), r.Owner)
			}
		}
	}
	if skip(); next < len(p.arrived) {
		return fmt.Errorf("message %v is lost", p.arrived[next].name())
	}
	return nil
}

func (p *process) checkPosts() error {
	next, wilds := 0, 0
	skip := func() {
		for next < len(p.posts) && p.matched[next] != none {
			next++
		}
	}
	for r := range p.Posts() {
		if skip(); r.Owner != next || !r.Posted() {
			return fmt.Errorf("receive %v is posted in the wrong place", r.Owner)
		}
		if n := p.outcome[next]; n != none && r.Source != n.source {
			return fmt.Errorf("receive %d is from %d, its outcome %v", next, r.Source, n)
		}
		if r.Wild != nil {
			wilds++
		}
		next++
	}
	if skip(); next < len(p.posts) {
		return fmt.Errorf("receive %d is lost", next)
	}
	if p.wilds != wilds {
		return fmt.Errorf("%d receives with a Wild are posted, the Box counts %d", wilds, p.wilds)
	}
	return nil
}
