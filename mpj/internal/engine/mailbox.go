package engine

import (
	"cmp"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A message has arrived and is not matched.
type message struct {
	protection.Message
	arrival uint64 // number in its mailbox, in order of arrival
	bound   bool   // to a wildcard that is proposed

	// Without a protocol the payload may still be with its sender.
	announced bool
	full      int      // bytes
	sender    *Request // if that is this process
	address   uint64   // where it is there, if this process may read it
}

// size returns the bytes of m.
func (m message) size() int {
	if m.announced {
		return m.full
	}
	return len(m.Payload)
}

// A mailbox matches the messages of one context with its posted receives. It
// is a pure value: the engine tells it of every message and receive, and is
// told of every match.
//
// A post takes the first message, in order of arrival, that it could take, and
// only if no earlier post still in the mailbox could take that too. Mostly the
// second half makes nobody wait, since the earlier post would have the message
// by then. It does while a wildcard's outcome is not known: at a replica, which
// must not choose, and at the decider from proposing a message to the
// protocol's decided. A wildcard stays in the mailbox that long, and so does the
// message that is bound to it; what it could take waits, and so do the posts
// that could take the same, and those behind these. So a named receive shows the program nothing that depends on
// an outcome that some replica may still lack (R4). One wildcard need not wait
// for another's outcome: its own says by name what it got.
//
// Once decided, a wildcard is exact: it takes one message, by name, and leaves
// all others alone. So every match at a replica is the one that the decider
// made, whatever the order of arrival from different sources.
type mailbox struct {
	posts      []*Request // in program order
	unexpected []message  // in order of arrival; somewhere in space
	space      []message  // without elements
	arrivals   uint64
	present    map[origin]struct{} // of unexpected; nil: not made
	wildcards  int                 // among posts
	points     uint64
	news       bool      // has come, and ends what waits
	abandoned  bool      // nothing is received any more
	probes     []*waiter // to wake when a message has come or a post has gone
}

// takes reports whether post r could take m.
func (r *Request) takes(m protection.Message) bool {
	if r.exact {
		return r.source == m.Source && r.seq == m.Seq
	}
	return matches(r.source, r.tag, &m)
}

func matches(source int, tag int32, m *protection.Message) bool {
	return (source == AnySource || source == m.Source) && (tag == AnyTag || tag == m.Tag)
}

// mayTake reports whether r may take anything now.
func (r *Request) mayTake(decider bool) bool {
	return !r.wildcard || r.exact || decider && !r.proposed
}

// Where every message may be matched as soon as there is a receive for it,
// nothing in the mailbox fits anything else in it, and the next three are
// enough.

// claim removes and returns the first post that takes a message.
func (b *mailbox) claim(source int, tag int32) *Request {
	for i, r := range b.posts {
		if (r.source == AnySource || r.source == source) && (r.tag == AnyTag || r.tag == tag) {
			b.removePost(i)
			return r
		}
	}
	return nil
}

// find removes and returns the first message that r takes.
func (b *mailbox) find(r *Request) (message, bool) {
	for i := range b.unexpected {
		if matches(r.source, r.tag, &b.unexpected[i].Message) {
			return b.removeMessage(i), true
		}
	}
	return message{}, false
}

// add keeps a message that no post takes.
func (b *mailbox) add(m message) {
	if n := len(b.unexpected); n == cap(b.unexpected) { // it has come to the end of the space
		if cap(b.space) <= 2*n {
			b.space = make([]message, 0, 2*n+4)
		}
		moved := append(b.space, b.unexpected...)
		clear(b.unexpected)
		b.unexpected = moved
	}
	b.unexpected = append(b.unexpected, m)
	if b.present != nil {
		b.present[origin{m.Source, m.Seq}] = struct{}{}
	}
}

// An origin names a message of a context.
type origin struct {
	source int
	seq    uint64
}

// has reports whether the message of that name waits to be matched. That many
// wait and many are asked for is rare, but then it is not to take long.
func (b *mailbox) has(source int, seq uint64) bool {
	if b.present == nil {
		if len(b.unexpected) <= fewMessages {
			return slices.ContainsFunc(b.unexpected, func(m message) bool { return m.Source == source && m.Seq == seq })
		}
		b.present = make(map[origin]struct{})
		for i := range b.unexpected {
			b.present[origin{b.unexpected[i].Source, b.unexpected[i].Seq}] = struct{}{}
		}
	}
	_, ok := b.present[origin{source, seq}]
	return ok
}

// fewMessages is how many has looks at one by one.
const fewMessages = 64

func (b *mailbox) append(r *Request) {
	r.posted = true
	b.posts = append(b.posts, r)
}

// remove takes back a post.
func (b *mailbox) remove(r *Request) { b.removePost(slices.Index(b.posts, r)) }

// arrive takes m and returns the post that gets it, if there is one.
func (b *mailbox) arrive(m protection.Message, decider bool) (*Request, message, bool) {
	b.arrivals++
	arrived := message{Message: m, arrival: b.arrivals}
	if b.wildcards == 0 { // then nothing waits for an outcome
		for i, r := range b.posts {
			if r.takes(m) {
				b.removePost(i)
				return r, arrived, true
			}
		}
		b.add(arrived)
		return nil, message{}, false
	}
	b.add(arrived)
	return b.match(decider, func(r *Request) bool { return r.takes(m) })
}

// post takes r and returns the message that it gets, if there is one.
func (b *mailbox) post(r *Request, decider bool) (message, bool) {
	b.append(r)
	if r.wildcard {
		b.wildcards++
	}
	i := len(b.posts) - 1
	j, ok := b.choice(i, decider)
	if !ok {
		return message{}, false
	}
	return b.take(i, j), true
}

// match returns a post, among those that the caller wants, and its message, if
// there are two that belong together now. Exact posts come first, so that no
// wildcard at a new decider takes what an outcome has given away.
func (b *mailbox) match(decider bool, wanted func(*Request) bool) (*Request, message, bool) {
	for _, exact := range []bool{true, false} {
		for i, r := range b.posts {
			if r.exact != exact || !wanted(r) {
				continue
			}
			if j, ok := b.choice(i, decider); ok {
				return r, b.take(i, j), true
			}
		}
	}
	return nil, message{}, false
}

// choice returns the index of the message that post i may take now.
func (b *mailbox) choice(i int, decider bool) (j int, ok bool) {
	r := b.posts[i]
	if !r.mayTake(decider) {
		return 0, false
	}
	j = slices.IndexFunc(b.unexpected, func(m message) bool {
		return r.takes(m.Message) && !(m.bound && r.wildcard)
	})
	return j, j >= 0 && (r.exact || !b.claimed(b.unexpected[j], i, r.wildcard))
}

// claimed reports whether one of the first n posts could take m. A proposed
// one claims nothing from a wildcard.
func (b *mailbox) claimed(m message, n int, wildcard bool) bool {
	return slices.ContainsFunc(b.posts[:n], func(r *Request) bool {
		return !(r.proposed && wildcard) && r.takes(m.Message)
	})
}

// take gives message j to post i, and removes both; or it binds the message
// to a wildcard whose outcome is not known.
func (b *mailbox) take(i, j int) message {
	r := b.posts[i]
	if r.wildcard && !r.exact {
		b.unexpected[j].bound = true
		r.proposed, r.bound = true, b.unexpected[j]
		return r.bound
	}
	b.removePost(i)
	return b.removeMessage(j)
}

// probe returns the message that a receive posted now would take.
func (b *mailbox) probe(source int, tag int32) (message, bool) {
	for _, m := range b.unexpected {
		if matches(source, tag, &m.Message) {
			return m, !b.claimed(m, len(b.posts), false)
		}
	}
	return message{}, false
}

// decide tells wildcard r which message it gets. done says that r has it and is
// out of the mailbox. Otherwise r is exact from now on, and what was bound to it
// is free again.
func (b *mailbox) decide(r *Request, source int, seq uint64) (done bool) {
	if r.proposed {
		j, _ := slices.BinarySearchFunc(b.unexpected, r.bound.arrival, func(m message, arrival uint64) int {
			return cmp.Compare(m.arrival, arrival)
		})
		if r.bound.Source == source && r.bound.Seq == seq {
			b.removePost(slices.Index(b.posts, r))
			b.removeMessage(j)
			return true
		}
		b.unexpected[j].bound = false
		r.proposed, r.bound = false, message{}
	}
	r.exact, r.source, r.seq = true, source, seq
	return false
}

func (b *mailbox) removePost(i int) {
	if b.posts[i].wildcard {
		b.wildcards--
	}
	b.posts[i].posted = false
	if last := len(b.posts) - 1; i == last { // the usual case
		b.posts[last] = nil
		b.posts = b.posts[:last]
		return
	}
	b.posts = slices.Delete(b.posts, i, i+1)
}

func (b *mailbox) removeMessage(i int) message {
	m := b.unexpected[i]
	if b.present != nil {
		delete(b.present, origin{m.Source, m.Seq})
	}
	if i > 0 {
		b.unexpected = slices.Delete(b.unexpected, i, i+1)
		return m
	}
	b.unexpected[0] = message{} // the usual case, and cheap with many waiting
	b.unexpected = b.unexpected[1:]
	if len(b.unexpected) == 0 {
		b.unexpected, b.present = b.space, nil
		if cap(b.space) > spaceKept {
			b.space, b.unexpected = nil, nil
		}
	}
	return m
}

// spaceKept is how many messages an empty mailbox keeps space for.
const spaceKept = 1024

func (b *mailbox) wakeProbes() {
	for _, w := range b.probes {
		w.wake()
	}
}
