package engine

import (
	"cmp"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A message is a message that has arrived and is not matched.
type message struct {
	protection.Message
	arrival uint64 // number in its mailbox, in order of arrival
	bound   bool   // bound to a proposed wildcard

	// Without a protocol, the payload may still be at its sender.
	announced bool
	full      int      // size of the payload in bytes
	sender    *Request // the send, if this process is the sender
	address   uint64   // address of the payload at the sender, if this process may read it
}

// size returns the bytes of m.
func (m message) size() int {
	if m.announced {
		return m.full
	}
	return len(m.Payload)
}

// A mailbox matches the messages of one context with its posted receives. It is a pure value: the
// engine passes it every message and receive, and the mailbox returns every match.
//
// A post takes the first message, in order of arrival, that matches it, but only if no earlier post
// still in the mailbox could also take that message. Usually this condition delays nothing, because
// the earlier post would already have taken the message. It causes a delay while the outcome of a
// wildcard is unknown: at a replica, which must not choose, and at the decider between its proposal
// and the protocol's decision. During that time the wildcard and the message bound to it stay in the
// mailbox. The messages that the wildcard could take wait, and so do the posts that compete for
// them, and the posts behind these. So the result of a named receive never depends on an outcome
// that a replica may still lack (R4). A wildcard need not wait for the outcome of another wildcard,
// because its own outcome names its message.
//
// Once decided, a wildcard is exact: it takes only the message that its outcome names. So every
// replica makes the matches of the decider, whatever the order of arrival from different sources.
type mailbox struct {
	posts      []*Request // in program order
	unexpected []message  // in order of arrival; a part of space
	space      []message  // memory of unexpected, with length 0
	arrivals   uint64
	present    map[origin]struct{} // names of the messages in unexpected; nil if not built
	wildcards  int                 // number of wildcards among posts
	points     uint64
	notice     bool      // a failure notice has arrived; it ends waiting calls
	abandoned  bool      // the program receives no more messages in this context
	probes     []*waiter // waiters to wake when a message has arrived or a post was removed
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

// mayTake reports whether r may take any message now.
func (r *Request) mayTake(decider bool) bool {
	return !r.wildcard || r.exact || decider && !r.proposed
}

// Without a protocol, a message is matched as soon as a matching receive exists. So no message in
// the mailbox matches any post in it, and the next three methods are enough.

// claim removes and returns the first post that takes a message with this source and tag.
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
	if n := len(b.unexpected); n == cap(b.unexpected) { // unexpected fills its space to the end
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

// An origin names a message within a context.
type origin struct {
	source int
	seq    uint64
}

// has reports whether the named message is unmatched. It builds an index if many messages wait, so
// that this rare case is also fast.
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

// fewMessages is the number of messages up to which has searches linearly.
const fewMessages = 64

func (b *mailbox) append(r *Request) {
	r.posted = true
	b.posts = append(b.posts, r)
}

// remove withdraws a posted receive.
func (b *mailbox) remove(r *Request) { b.removePost(slices.Index(b.posts, r)) }

// arrive adds m and returns the post that gets m, if any.
func (b *mailbox) arrive(m protection.Message, decider bool) (*Request, message, bool) {
	b.arrivals++
	arrived := message{Message: m, arrival: b.arrivals}
	if b.wildcards == 0 { // so no post waits for an outcome
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

// post adds r and returns the message that r gets, if any.
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

// match returns a wanted post and the message that it may take now, if such a pair exists. It
// prefers exact posts, so that no wildcard at a new decider takes a message that an outcome has
// already assigned.
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

// claimed reports whether one of the first n posts could take m. If wildcard is true, proposed posts
// do not count.
func (b *mailbox) claimed(m message, n int, wildcard bool) bool {
	return slices.ContainsFunc(b.posts[:n], func(r *Request) bool {
		return !(r.proposed && wildcard) && r.takes(m.Message)
	})
}

// take gives message j to post i and removes both. If the post is a wildcard whose outcome is not
// known, take binds the message to it instead.
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

// decide assigns the named message to wildcard r. If r is already bound to that message, decide
// removes both and returns true. Otherwise r becomes exact, and the message bound to it becomes free
// again.
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
	b.unexpected[0] = message{} // the usual case, and cheap when many messages wait
	b.unexpected = b.unexpected[1:]
	if len(b.unexpected) == 0 {
		b.unexpected, b.present = b.space, nil
		if cap(b.space) > spaceKept {
			b.space, b.unexpected = nil, nil
		}
	}
	return m
}

// spaceKept is the largest capacity, in messages, that an empty mailbox keeps.
const spaceKept = 1024

func (b *mailbox) wakeProbes() {
	for _, w := range b.probes {
		w.wake()
	}
}
