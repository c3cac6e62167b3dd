package match

import (
	"iter"
	"slices"
)

// A Message is a message that has arrived in a context.
type Message struct {
	Context uint32
	Tag     int32
	Source  int    // rank
	Seq     uint64 // number; Source and Seq name the message within its context
	Size    int    // bytes of the payload
	Payload []byte // nil if it has not arrived with the message, or was dropped
	Sync    bool   // the sender waits until the message has been matched
	bound   bool   // proposed as the outcome of a wildcard receive

	// Ref and Address are for the caller. They tell where the payload is if it has not arrived.
	Ref     any
	Address uint64
}

// A queue contains the unexpected messages of a Box (those that no receive has taken), in order of arrival.
type queue struct {
	messages []Message         // a part of space
	space    []Message         // memory of messages, with length 0
	names    map[name]struct{} // names of messages; nil if not built
}

// A name names a message within its context.
type name struct {
	source int
	seq    uint64
}

func (m *Message) name() name { return name{m.Source, m.Seq} }

// Keep adds a message that no posted receive takes, as Claim has shown.
func (q *queue) Keep(m Message) {
	if n := len(q.messages); n == cap(q.messages) { // messages fills its space to the end
		if cap(q.space) <= 2*n {
			q.space = make([]Message, 0, 2*n+4)
		}
		moved := append(q.space, q.messages...)
		clear(q.messages)
		q.messages = moved
	}
	q.messages = append(q.messages, m)
	if q.names != nil {
		q.names[m.name()] = struct{}{}
	}
}

// find returns the index of the first message with this source and tag, or -1.
func (q *queue) find(source int, tag int32) int {
	for i := range q.messages {
		if fits(source, tag, &q.messages[i]) {
			return i
		}
	}
	return -1
}

// take removes and returns the message at index i.
func (q *queue) take(i int) Message {
	m := q.messages[i]
	if q.names != nil {
		delete(q.names, m.name())
	}
	if i > 0 {
		q.messages = slices.Delete(q.messages, i, i+1)
		return m
	}
	q.messages[0] = Message{} // the usual case, and cheap when many messages wait
	if q.messages = q.messages[1:]; len(q.messages) == 0 {
		q.rewind()
	}
	return m
}

// rewind makes an empty queue start at the beginning of its space again.
func (q *queue) rewind() {
	q.messages, q.names = q.space, nil
	if cap(q.space) > spaceKept {
		q.space, q.messages = nil, nil
	}
}

// spaceKept is the largest capacity, in messages, that an empty queue keeps.
const spaceKept = 1024

// Has reports whether the named message is unexpected. It builds an index if there are many such messages, so that
// this rare case is also fast.
func (q *queue) Has(source int, seq uint64) bool {
	if q.names == nil {
		if len(q.messages) <= fewMessages {
			return q.index(name{source, seq}) >= 0
		}
		q.names = make(map[name]struct{}, len(q.messages))
		for i := range q.messages {
			q.names[q.messages[i].name()] = struct{}{}
		}
	}
	_, ok := q.names[name{source, seq}]
	return ok
}

// index returns the index of the named message, or -1.
func (q *queue) index(n name) int {
	for i := range q.messages {
		if q.messages[i].name() == n {
			return i
		}
	}
	return -1
}

// fewMessages is the number of messages up to which Has searches linearly.
const fewMessages = 64

// Messages returns the unexpected messages in order of arrival. The caller may change the payload of a message and
// the fields that are for the caller, but must not use the Box meanwhile.
func (q *queue) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		for i := range q.messages {
			if !yield(&q.messages[i]) {
				return
			}
		}
	}
}

// Last returns the unexpected message that arrived last. There must be one.
func (q *queue) Last() *Message { return &q.messages[len(q.messages)-1] }

// Remove removes the unexpected messages for which remove returns true. It calls remove for each of them in order of
// arrival; remove must not use the Box. No wildcard receive may be proposed.
func (q *queue) Remove(remove func(*Message) bool) {
	kept := q.messages[:0]
	for i := range q.messages {
		if m := &q.messages[i]; !remove(m) {
			kept = append(kept, *m)
		}
	}
	clear(q.messages[len(kept):])
	q.messages, q.names = kept, nil
	if len(kept) == 0 {
		q.rewind()
	}
}

// Clear removes all unexpected messages and releases their memory. No wildcard receive may be proposed.
func (q *queue) Clear() { *q = queue{} }
