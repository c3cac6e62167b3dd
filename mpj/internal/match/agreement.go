package match

// Decide tells a posted receive with a Wild the outcome. If the receive has proposed that message, it takes the message
// and Decide returns true. Otherwise the receive becomes exact, and the message that it has proposed is free again. The
// caller then calls Next.
func (b *Box) Decide(r *Recv, source int, seq uint64) (Message, bool) {
	if w := r.Wild; w.state == proposed {
		i := b.index(w.message)
		if w.message == (name{source, seq}) {
			b.remove(r)
			return b.take(i), true
		}
		b.messages[i].bound = false
	}
	r.Assign(source, seq)
	return Message{}, false
}

// Next makes a match or a proposal that has become possible, and returns it. It prefers exact receives, so that no
// proposal of a new decider takes a message that an outcome has already assigned.
func (b *Box) Next(decider bool) (*Recv, Message, Result) { return b.next(decider, nil) }

// next is Next for the receives that fit arrived, or for all receives if arrived is nil.
func (b *Box) next(decider bool, arrived *Message) (*Recv, Message, Result) {
	for _, first := range [...]bool{true, false} {
		for r := b.first; r != nil; r = r.next {
			if r.is(exact) != first || arrived != nil && !r.fits(arrived) {
				continue
			}
			if i := b.choose(r, decider); i >= 0 {
				m, got := b.grant(r, i)
				return r, m, got
			}
		}
	}
	return nil, Message{}, Waits
}

// choose returns the index of the message that posted receive r may take or propose now, or -1.
func (b *Box) choose(r *Recv, decider bool) int {
	if r.is(proposed) || r.is(open) && !decider {
		return -1
	}
	for i := range b.messages {
		m := &b.messages[i]
		switch {
		case !r.fits(m) || m.bound && r.Wild != nil:
		case r.is(exact) || !b.claimed(m, r):
			return i
		default:
			return -1 // a later message must not overtake m
		}
	}
	return -1
}

// claimed reports whether a receive posted before r could take m. If r has a Wild, proposed receives do not count. If r
// is nil, claimed considers all posted receives.
func (b *Box) claimed(m *Message, r *Recv) bool {
	for p := b.first; p != r; p = p.next {
		if p.fits(m) && !(r != nil && r.Wild != nil && p.is(proposed)) {
			return true
		}
	}
	return false
}

// grant gives the message at index i to r and removes both. If r is open, grant binds the message to r instead.
func (b *Box) grant(r *Recv, i int) (Message, Result) {
	if r.is(open) {
		m := &b.messages[i]
		m.bound = true
		r.Wild.state, r.Wild.message = proposed, m.name()
		return *m, Proposed
	}
	b.remove(r)
	return b.take(i), Matched
}
