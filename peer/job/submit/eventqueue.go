package submit

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// An EventQueue holds the events of a job until the user has them:
//
//	job --Put--> | event event event | --After--> listener --> user
//	     <-shown-                     <--Acknowledge--
//
// A listener asks for the events that follow those that it has, and acknowledges events by number
// once the user has them. If a listener ends, the next one gets all events that were not
// acknowledged. A user who reads slowly, or not at all, delays only the output.
//
// Output and the result wait without a time limit; the job limits its output that waits (maxUnread).
type EventQueue struct {
	wake  chan struct{} // holds a token when a listener has something to do
	news  chan struct{} // holds a token when shown may not be empty
	taken chan struct{} // holds a token when fewer events wait

	lossy bool // bounds all events other than output and the result: see makeRoom

	settling sync.Mutex // held while acknowledged output is recorded, in order; locked before mu

	mu         sync.Mutex
	job        string                // ID of the job, or "" until known
	kept       bool                  // another process can resume the job
	keeper     *keeper               // records what was acknowledged
	unrecorded bool                  // the user knows that acknowledged output cannot be recorded
	cancel     func(error)           // cancels the job; nil before begin
	numbered   uint64                // last number
	waiting    []Numbered            // in order of their numbers
	droppable  int                   // number of waiting events that may be dropped
	unread     map[job.Source]int    // bytes of whole records that wait, with outputOverhead
	shown      map[job.Source]uint64 // last records acknowledged since the job has asked
	states     []Numbered            // latest acknowledged placement, phase and view
	result     []Numbered            // acknowledged result, for later listeners
	finished   bool                  // no events follow
	closed     error                 // argument of Close; nil while open
}

const (
	// maxDroppable bounds the waiting events of a lossy queue other than output and the result.
	maxDroppable = 256

	// maxUnread limits the bytes of a stream that may wait for the user. A peer stops reading its
	// program's output at 1 MiB, which the user may have to read first, so an honest peer needs
	// less.
	maxUnread = 4 << 20

	// outputOverhead is added to the size of each waiting output event, so that many short ones are
	// limited too.
	outputOverhead = 40
)

// NewEventQueue returns the EventQueue of a job whose listeners come and go. id is that of a kept job to
// resume; it is empty for a new job. The caller must close the queue if no listener comes.
func NewEventQueue(id string) *EventQueue {
	q := newEventQueue()
	q.job, q.kept, q.lossy = id, id != "", true
	return q
}

// Showing returns an EventQueue with one listener, which passes every event but the result to show. It
// acknowledges an event when show returns. After an error of show, the job is cancelled.
func Showing(show func(Event) error) *EventQueue {
	q := newEventQueue()
	go q.listen(show) // ends with finish or Close
	return q
}

func newEventQueue() *EventQueue {
	return &EventQueue{
		wake: make(chan struct{}, 1), news: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		unread: make(map[job.Source]int), shown: make(map[job.Source]uint64),
	}
}

// begin connects the queue with its job, before the first event: k records the acknowledged output, and
// Close calls cancel.
func (q *EventQueue) begin(k *keeper, cancel func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keeper, q.cancel = k, cancel
}

// Put adds an event. It never blocks.
func (q *EventQueue) Put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return
	}
	e.Time = time.Now()
	q.job, q.kept = cmp.Or(q.job, e.Job), q.kept || e.Kind == KeptEvent
	if last := len(q.waiting) - 1; last < 0 || q.waiting[last].Number != q.numbered || !q.waiting[last].extend(e) {
		q.makeRoom(e)
		q.waiting = append(q.waiting, Numbered{q.numbered + e.numbers(), e})
		q.count(e, outputOverhead)
	}
	q.count(e, len(e.Data))
	q.numbered += e.numbers()
	signal(q.wake)
}

// count adds n bytes to the unread bytes of an event's stream, if the event has records. q.mu is held.
func (q *EventQueue) count(e Event, n int) {
	if e.Record > 0 {
		q.unread[e.source()] += n
	}
}

// unreadOf returns how many bytes of a stream wait, with their overhead.
func (q *EventQueue) unreadOf(s job.Source) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unread[s]
}

// makeRoom removes the waiting event that e replaces. If a lossy queue has maxDroppable events that may
// be dropped, it removes the oldest one, but never a KeptEvent, which comes only once and on which a
// listener depends if this process is killed. q.mu is held.
func (q *EventQueue) makeRoom(e Event) {
	lost := q.replacedBy(e)
	if lost < 0 && q.mayDrop(e.Kind) && q.droppable == maxDroppable {
		lost = slices.IndexFunc(q.waiting, func(n Numbered) bool { return q.mayDrop(n.Kind) && n.Kind != KeptEvent })
	}
	switch {
	case lost >= 0:
		q.waiting = slices.Delete(q.waiting, lost, lost+1)
	case q.mayDrop(e.Kind):
		q.droppable++
	}
}

// replacedBy returns the index of a waiting event with earlier progress of e's phase, or -1. In a queue
// that is not lossy, only the last event counts, so that the user sees each change of the phase.
// q.mu is held.
func (q *EventQueue) replacedBy(e Event) int {
	if e.Kind != PhaseEvent {
		return -1
	}
	first := 0
	if !q.lossy {
		first = max(0, len(q.waiting)-1)
	}
	for i := first; i < len(q.waiting); i++ {
		if n := q.waiting[i]; n.Kind == e.Kind && n.Phase == e.Phase {
			return i
		}
	}
	return -1
}

// mayDrop reports whether events of a kind may be dropped.
func (q *EventQueue) mayDrop(k Kind) bool { return q.lossy && k != OutputEvent && k != ResultEvent }

// signal leaves a token in c unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wake returns a channel that receives a token when new events wait.
func (q *EventQueue) Wake() <-chan struct{} { return q.wake }

// Job returns the ID of the job, or "" if it has none yet.
func (q *EventQueue) Job() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.job
}

// Kept reports whether another process can resume the job.
func (q *EventQueue) Kept() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept
}

// State returns the acknowledged events that describe the job's current state to a new listener.
// Their number is 0.
func (q *EventQueue) State() []Numbered {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.states)
}

// maxBatch is the maximum number of events that After returns.
const maxBatch = 512

// After returns the next events after the given number. If there are none, but a listener has
// acknowledged the result, it returns the result.
func (q *EventQueue) After(number uint64) []Numbered {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.waiting[q.upTo(number):]
	if len(rest) == 0 && len(q.result) > 0 && q.result[0].Number > number {
		rest = q.result
	}
	rest = slices.Clone(rest[:min(len(rest), maxBatch)])
	if len(rest) > 0 && rest[0].spans(number) {
		_, rest[0] = rest[0].split(number)
	}
	return rest
}

// upTo returns how many of the waiting events end with the given number or before. q.mu is held.
func (q *EventQueue) upTo(number uint64) int {
	return sort.Search(len(q.waiting), func(i int) bool { return q.waiting[i].Number > number })
}

// Acknowledge handles a listener's report that the user has all events up to number.
func (q *EventQueue) Acknowledge(number uint64) {
	q.settling.Lock()
	defer q.settling.Unlock()
	for _, n := range q.take(number) {
		q.settle(n)
	}
	signal(q.taken)
}

// take removes the waiting events and records up to number, and returns them.
func (q *EventQueue) take(number uint64) []Numbered {
	q.mu.Lock()
	defer q.mu.Unlock()
	end := q.upTo(number)
	had := slices.Clone(q.waiting[:end])
	for _, n := range had {
		q.count(n.Event, -outputOverhead)
		if q.mayDrop(n.Kind) {
			q.droppable--
		}
	}
	clear(q.waiting[:end])
	q.waiting = q.waiting[end:]
	if len(q.waiting) > 0 && q.waiting[0].spans(number) {
		var part Numbered
		part, q.waiting[0] = q.waiting[0].split(number)
		had = append(had, part)
	}
	for _, n := range had {
		q.count(n.Event, -len(n.Data))
	}
	return had
}

// settle retains of an acknowledged event what another process that resumes the job, the job, and later
// listeners need. The job learns of output only after it was recorded.
func (q *EventQueue) settle(n Numbered) {
	if n.Record > 0 {
		q.note(n.Event)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case n.Record > 0:
		q.shown[n.source()] = n.Record
		signal(q.news)
	case n.Kind == ResultEvent:
		q.keeper.delivered()
		q.result = []Numbered{n}
	case n.Kind == PlacedEvent || n.Kind == PhaseEvent || n.View != nil:
		q.states = slices.DeleteFunc(q.states, func(before Numbered) bool { return before.Kind == n.Kind })
		n.Number = 0
		q.states = append(q.states, n)
	}
}

// note records that the user has the records of an output event.
func (q *EventQueue) note(e Event) {
	err := q.keeper.note(e)
	if err == nil || q.unrecorded {
		return
	}
	q.unrecorded = true
	q.Put(Event{Kind: WarningEvent, Job: q.Job(), Text: fmt.Sprintf("if this p2prun is killed, some output may be shown twice, since the position of the shown output cannot be recorded: %v", err)})
}

// takeShown returns the last record that the user has of each stream that was acknowledged since the
// last call.
func (q *EventQueue) takeShown() map[job.Source]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	shown := q.shown
	q.shown = make(map[job.Source]uint64)
	return shown
}

// unshown returns the output that is not acknowledged.
func (q *EventQueue) unshown() (rest []Output) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range q.waiting {
		if n.Kind == OutputEvent {
			rest = append(rest, Output{n.Rank, n.Stream, n.Record, n.Records, n.Data})
		}
	}
	return rest
}

// Close drops all waiting and later events, which no listener can get any more, and cancels the job. err
// is the reason.
func (q *EventQueue) Close(err error) {
	q.mu.Lock()
	if q.closed != nil {
		q.mu.Unlock()
		return
	}
	q.closed, q.waiting, q.droppable = err, nil, 0
	cancel := q.cancel
	q.mu.Unlock()
	if cancel != nil {
		cancel(fmt.Errorf("no listener: %w", err))
	}
	signal(q.taken)
}

// Flush returns when all output and the result are acknowledged, or the queue is closed. Events that may
// be dropped may still wait. Only the job may call it.
func (q *EventQueue) Flush() {
	for !q.flushed() {
		<-q.taken
	}
}

func (q *EventQueue) flushed() bool {
	q.settling.Lock() // until what was taken is settled
	defer q.settling.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == q.droppable
}

// finish declares that no events follow, and flushes the queue.
func (q *EventQueue) finish() {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	signal(q.wake)
	q.Flush()
}

// listen shows the events until the last one.
func (q *EventQueue) listen(show func(Event) error) {
	for range q.wake {
		for n, ok := q.next(); ok; n, ok = q.next() {
			if n.Kind != ResultEvent {
				if err := show(n.Event); err != nil {
					q.Close(err)
				}
			}
			q.Acknowledge(n.Number)
		}
		if q.over() {
			return
		}
	}
}

// next returns the first waiting event. Of output that is recorded, it returns only one record: if
// this process is killed, a resumed job shows output again that was shown and not recorded.
func (q *EventQueue) next() (n Numbered, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return Numbered{}, false
	}
	n = q.waiting[0]
	if first := n.Number - n.numbers() + 1; q.keeper != nil && n.spans(first) {
		n, _ = n.split(first)
	}
	return n, true
}

// over reports whether nothing is left to show, and nothing will come.
func (q *EventQueue) over() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed != nil || q.finished && len(q.waiting) == 0
}
