package job

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// outgoing are the messages that wait for a peer to read. They need no limit,
// so that a peer is not lost over a burst or a link that hangs for a moment:
// a view or an acknowledgement replaces an earlier one that still waits, and
// of the others there are but a few.
type outgoing struct {
	wake chan struct{} // holds a token when the queue may not be empty

	mu    sync.Mutex
	queue []*jobpb.ToPeer
	at    map[topic]int // where in the queue the message of a topic is
}

// A topic is what only the latest word counts of: the view, or how much of a
// rank's output the user has.
type topic struct {
	view bool
	rank uint32
}

func topicOf(m *jobpb.ToPeer) (t topic, ok bool) {
	switch b := m.Body.(type) {
	case *jobpb.ToPeer_View:
		return topic{view: true}, true
	case *jobpb.ToPeer_Emitted:
		return topic{rank: b.Emitted.Rank}, true
	}
	return topic{}, false
}

func newOutgoing() *outgoing {
	return &outgoing{wake: make(chan struct{}, 1), at: make(map[topic]int)}
}

func (o *outgoing) put(m *jobpb.ToPeer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, only := topicOf(m)
	if i, waits := o.at[t]; only && waits {
		o.queue[i] = m
		return
	}
	if only {
		o.at[t] = len(o.queue)
	}
	o.queue = append(o.queue, m)
	signal(o.wake)
}

// take empties the queue.
func (o *outgoing) take() []*jobpb.ToPeer {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	clear(o.at)
	return queue
}
