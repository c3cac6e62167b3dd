package peerstream

import (
	"context"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/background"
)

// A queue holds the messages that wait for one peer.
type queue[M any] struct {
	supersedes func(m, older M) bool // may be nil
	limit      int                   // maximum number of messages; 0 means no limit
	ready      chan struct{}         // holds an element if there may be messages

	mu       sync.Mutex
	messages []M
}

// put adds a message, or puts it in the place of one that it supersedes. If the queue is full, put drops the
// message. It never blocks.
func (q *queue[M]) put(m M) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.supersedes != nil {
		for i, older := range q.messages {
			if q.supersedes(m, older) {
				q.messages[i] = m
				return
			}
		}
	}
	if q.limit > 0 && len(q.messages) >= q.limit {
		return
	}
	q.messages = append(q.messages, m)
	background.Notify(q.ready)
}

// take waits for a message, and removes and returns the oldest one. ok is false if ctx has ended.
func (q *queue[M]) take(ctx context.Context) (m M, ok bool) {
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
			return m, false
		case <-q.ready:
		}
	}
}
