package faultdetect

import (
	"context"
	"sync"
)

// An outQueue holds the messages that are to be sent to one member. A newer message replaces an older one
// of the same kind and subject. So the queue of a member that does not read never exceeds 4n + 3
// messages.
type outQueue struct {
	bell chan struct{} // holds an element if there may be messages

	mu       sync.Mutex
	messages []Message
}

func newOutQueue() *outQueue { return &outQueue{bell: make(chan struct{}, 1)} }

// put adds a message, or replaces an older equivalent one. It never blocks.
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

// take waits for a message. ok is false if ctx has ended.
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
