package match

import "iter"

// AnySource and AnyTag are the source and the tag of a receive that takes a message from any rank, or with any tag.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Recv is the part of a receive that matching needs. The caller embeds it in its request. It must not be copied or
// changed while it is posted.
type Recv struct {
	Source int   // rank or AnySource; after Assign and Decide, the rank that the outcome names
	Tag    int32 // tag or AnyTag
	posted bool
	next   *Recv // the neighbours in the list of posted receives
	prev   *Recv
	Wild   *Wild // agreement on the message that the receive takes; nil if none is needed
	Owner  any   // the request that contains the Recv, for the caller
}

// Posted reports whether the receive is in a Box.
func (r *Recv) Posted() bool { return r.posted }

// Assign makes a receive with a Wild exact: it takes only the named message.
func (r *Recv) Assign(source int, seq uint64) {
	r.Source = source
	r.Wild.state, r.Wild.message = exact, name{source, seq}
}

// A Point identifies a decision of the program: the Index-th of its context, in program order. It is the same at all
// replicas.
type Point struct {
	Context uint32
	Index   uint64
}

// A Wild is the state of the agreement on the message that a receive takes. The receive may have a named source, as
// that of a matched probe.
type Wild struct {
	Point   Point // point of the decision, for the caller
	state   state
	message name // the proposed or decided message
}

// Open reports whether no message is proposed or decided.
func (w *Wild) Open() bool { return w.state == open }

// A state is the state of a Wild.
type state uint8

const (
	open     state = iota // waits for a proposal or for an outcome
	proposed              // waits for the outcome, with a message bound to it
	exact                 // the outcome is known
)

// is reports whether the receive has a Wild in the given state.
func (r *Recv) is(s state) bool { return r.Wild != nil && r.Wild.state == s }

// fits reports whether r could take m.
func (r *Recv) fits(m *Message) bool {
	if r.is(exact) {
		return r.Wild.message == m.name()
	}
	return fits(r.Source, r.Tag, m)
}

func fits(source int, tag int32, m *Message) bool {
	return (source == AnySource || source == m.Source) && (tag == AnyTag || tag == m.Tag)
}

// A list contains the posted receives of a Box, in the order of their posts. The receives themselves are its links.
type list struct {
	first, last *Recv
	wilds       int // number of receives with a Wild
}

func (l *list) append(r *Recv) {
	r.posted, r.prev = true, l.last
	if r.prev == nil {
		l.first = r
	} else {
		r.prev.next = r
	}
	l.last = r
	if r.Wild != nil {
		l.wilds++
	}
}

func (l *list) remove(r *Recv) {
	next, prev := r.next, r.prev
	if prev == nil {
		l.first = next
	} else {
		prev.next = next
	}
	if next == nil {
		l.last = prev
	} else {
		next.prev = prev
	}
	r.posted, r.next, r.prev = false, nil, nil
	if r.Wild != nil {
		l.wilds--
	}
}

// Withdraw removes r, which must be posted and must have no Wild. It then takes no message.
func (l *list) Withdraw(r *Recv) { l.remove(r) }

// Posted reports whether any receive is posted.
func (l *list) Posted() bool { return l.first != nil }

// Posts returns the posted receives in the order of their posts. The caller may withdraw the one that it has got.
func (l *list) Posts() iter.Seq[*Recv] {
	return func(yield func(*Recv) bool) {
		for r := l.first; r != nil; {
			next := r.next
			if !yield(r) {
				return
			}
			r = next
		}
	}
}
