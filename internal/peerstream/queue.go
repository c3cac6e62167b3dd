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
	maxBytes   int                   // maximum size of the messages; 0 means no limit
	size       func(m M) int         // may be nil if maxBytes is 0
	ready      chan struct{}         // holds an element if there may be messages

	mu       sync.Mutex
	messages []M
	bytes    int // size of the messages; 0 if maxBytes is 0
}

// put adds a message, or puts it in the place of one that it supersedes. If the queue is full, put drops the
// message. It never blocks.
func (q *queue[M]) put(m M) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.supersedes != nil {
		for i, older := range q.messages {
			if q.supersedes(m, older) {
				q.bytes += q.sizeOf(m) - q.sizeOf(older)
				q.messages[i] = m
				return
			}
		}
	}
	size := q.sizeOf(m)
	if q.limit > 0 && len(q.messages) >= q.limit || q.bytes+size > q.maxBytes && q.maxBytes > 0 {
		return
	}
	q.messages = append(q.messages, m)
	q.bytes += size
	background.Notify(q.ready)
}

// sizeOf returns the size of a message, or 0 if sizes are not limited.
func (q *queue[M]) sizeOf(m M) int {
	if q.maxBytes == 0 {
		return 0
	}
	return q.size(m)
}

// take waits for a message, and removes and returns the oldest one. ok is false if ctx has ended.
func (q *queue[M]) take(ctx context.Context) (m M, ok bool) {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			m, q.messages = q.messages[0], q.messages[1:]
			q.bytes -= q.sizeOf(m)
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
