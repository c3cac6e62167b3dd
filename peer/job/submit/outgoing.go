package submit

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// outgoing holds the messages that a peer has yet to read. It has no limit, so that a burst of
// messages or a link that hangs for a moment does not cost the job a peer. A view or an
// acknowledgement replaces an earlier one that still waits, and there are only a few other
// messages.
type outgoing struct {
	wake chan struct{} // holds a token when the queue may not be empty

	mu    sync.Mutex
	queue []*jobpb.ToPeer
	at    map[topic]int // index in queue of the message of each topic
}

// A topic identifies messages of which only the latest counts: the view, and how much of a rank's
// output the user has.
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

// take empties the queue and returns its messages.
func (o *outgoing) take() []*jobpb.ToPeer {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	clear(o.at)
	return queue
}
