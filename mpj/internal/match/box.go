package match

// A Result tells what a Box has done with a receive.
type Result uint8

// The results.
const (
	Waits    Result = iota // no receive has got a message
	Matched                // the receive has left the Box with the message
	Proposed               // the message is to be proposed as the outcome of the receive; both stay in the Box
)

// A Box matches the messages of one context with its receives. The zero Box is empty.
type Box struct {
	list
	queue
}

// Quiet reports whether the Box contains neither a posted receive nor a message.
func (b *Box) Quiet() bool { return b.first == nil && len(b.messages) == 0 }

// Post posts r, unless r takes an unexpected message at once. It returns that message, or the message that r
// proposes.
func (b *Box) Post(r *Recv, decider bool) (Message, Result) {
	if b.wilds == 0 && r.Wild == nil { // so no message waits for an earlier receive (M3)
		if i := b.find(r.Source, r.Tag); i >= 0 {
			return b.take(i), Matched
		}
		b.append(r)
		return Message{}, Waits
	}
	b.append(r)
	if i := b.choose(r, decider); i >= 0 {
		return b.grant(r, i)
	}
	return Message{}, Waits
}

// Claim removes and returns the first posted receive that takes a message with this source and tag, whose header has
// arrived. It returns nil if there is none, or if an agreement may give the message to another receive. The caller
// must then pass the message to Arrive, or to Keep if no receive has a Wild.
func (b *Box) Claim(source int, tag int32) *Recv {
	if b.wilds > 0 {
		return nil
	}
	for r := b.first; r != nil; r = r.next {
		if (r.Source == AnySource || r.Source == source) && (r.Tag == AnyTag || r.Tag == tag) {
			b.remove(r)
			return r
		}
	}
	return nil
}

// Arrive gives m to the posted receive that takes it, or keeps m. It returns the receive and the message that it has
// got or proposes.
func (b *Box) Arrive(m Message, decider bool) (*Recv, Message, Result) {
	if b.wilds > 0 {
		b.Keep(m)
		return b.next(decider, &m)
	}
	if r := b.Claim(m.Source, m.Tag); r != nil {
		return r, m, Matched
	}
	b.Keep(m)
	return nil, Message{}, Waits
}

// Probe returns the first message with this source and tag, or nil. A receive posted now would take it if ok;
// otherwise it may still go to a receive posted before. The pointer is valid until the Box changes.
func (b *Box) Probe(source int, tag int32) (m *Message, ok bool) {
	i := b.find(source, tag)
	if i < 0 {
		return nil, false
	}
	m = &b.messages[i]
	return m, b.wilds == 0 || !b.claimed(m, nil)
}

// Take removes and returns the message that a receive posted now would take.
func (b *Box) Take(source int, tag int32) (Message, bool) {
	i := b.find(source, tag)
	if i < 0 || b.wilds > 0 && b.claimed(&b.messages[i], nil) {
		return Message{}, false
	}
	return b.take(i), true
}
