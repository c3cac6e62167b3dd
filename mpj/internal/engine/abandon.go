package engine

import (
	"errors"
	"math"
)

// NewsTag is the tag of a message that says that nobody needs to wait in its
// context any more. Without replicas a receive of any tag that has no message
// fails with ErrNews as soon as there is one, from whatever rank. With replicas
// that would depend on timing: there it is a message like others.
const NewsTag = math.MinInt32

// ErrNews is the error of a receive that news has ended. The news is still to be
// received.
var ErrNews = errors.New("there is news")

// bring keeps m, which is news, and ends the receives that wait in its context.
func (b *mailbox) bring(m message) {
	b.news = true
	b.add(m)
	for i := len(b.posts) - 1; i >= 0; i-- {
		if r := b.posts[i]; r.tag == AnyTag {
			b.removePost(i)
			r.err = ErrNews
			r.finish()
		}
	}
}

// Abandon gives up a context in which this process receives nothing any more:
// what has come and what comes is thrown away, and senders that wait to be
// asked for a payload are told that nobody needs it. Nothing is posted in it.
func (e *Engine) Abandon(context uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	b := e.mailbox(context)
	b.abandoned = true
	for len(b.unexpected) > 0 {
		e.discard(b.removeMessage(0))
	}
	e.leave()
}

// discard throws m away. With a protocol it is acknowledged already, and its
// sender waits for nothing.
func (e *Engine) discard(m message) {
	switch {
	case e.protocol != nil:
	case m.sender != nil:
		e.sentToSelf(m.sender)
	case m.announced:
		e.answer(e.inlets[m.Source].from, m.Seq, notNeeded)
	default:
		e.consume(m)
		e.giveBack(m.Payload)
	}
}
