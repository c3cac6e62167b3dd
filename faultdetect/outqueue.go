package faultdetect

import (
	"context"
	"sync"
)

// An outQueue holds what is still to be sent to one member. Of messages that say
// the same only the newest is kept, because it says more; so a member that does
// not read makes it no longer than 4n + 3.
type outQueue struct {
	bell chan struct{} // holds one when there may be messages

	mu       sync.Mutex
	messages []Message
}

func newOutQueue() *outQueue { return &outQueue{bell: make(chan struct{}, 1)} }

// put adds a message, in the place of an older one like it. It never blocks.
func (q *outQueue) put(m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, o := range q.messages {
		if o.Kind == m.Kind && o.About == m.About && o.Tree == m.Tree {
			q.messages[i] = m
			return
		}
	}
	q.messages = append(q.messages, m)
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

// take waits for a message. ok is false when ctx has ended.
func (q *outQueue) take(ctx context.Context) (m Message, ok bool) {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			m, q.messages = q.messages[0], q.messages[1:]
			q.mu.Unlock()
			return m, ctx.Err() == nil
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return Message{}, false
		case <-q.bell:
		}
	}
}
