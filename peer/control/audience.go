package control

import (
	"cmp"
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A line is one event in the stream to the p2prun that follows a job over the control socket. It is written
// as a line of JSON; the Data of an output event follows it as raw bytes.
type line struct {
	Number  uint64 `json:"number"`            // acknowledged together with all lines before it, or 0 if not acknowledged
	Record  uint64 `json:"record,omitempty"`  // see submit.Event
	Records uint64 `json:"records,omitempty"` // likewise
	Size    int    `json:"size,omitempty"`    // of the Data behind the line
	submit.Event
	done func(error) // nil for an event that may be dropped
}

// An audience holds the events of a job that the listener has not acknowledged. It outlives the listener.
// The next one receives the remaining events, so none is lost, and only unacknowledged ones are repeated.
// Output and the result wait without a time limit. The job bounds their number by limiting its
// unacknowledged output. Of all other events, the latest maxDroppable wait.
type audience struct {
	wake chan struct{} // receives a token when new events wait

	settling sync.Mutex // held while done is called, in order of events; locked before mu

	mu        sync.Mutex
	numbered  uint64 // number of the last line
	waiting   []line // in order of their numbers
	droppable int    // number of waiting lines that may be dropped
	states    []line // latest acknowledged placement, phase and view
	result    []line // acknowledged result, for later listeners
	closed    error  // reason why no listener is accepted any more, or nil if open
}

// maxDroppable bounds the waiting events other than output and result.
const maxDroppable = 256

func newAudience() *audience { return &audience{wake: make(chan struct{}, 1)} }

// emit implements the job's Sink. It never blocks.
func (a *audience) emit(e submit.Event, done func(error)) {
	waited := e.Kind == submit.OutputEvent || e.Kind == submit.ResultEvent
	if a.add(e, done, waited) {
		if !waited {
			done(nil)
		}
		return
	}
	a.settling.Lock() // wait until done was called for earlier events
	defer a.settling.Unlock()
	done(a.closed) // does not change once set
}

// add queues an event. It returns false if the audience is closed.
func (a *audience) add(e submit.Event, done func(error), waited bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed != nil {
		return false
	}
	if !waited {
		a.makeRoom(e)
		a.droppable++
		done = nil
	}
	a.numbered++
	a.waiting = append(a.waiting, line{Number: a.numbered, Record: e.Record, Records: e.Records, Event: e, done: done})
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// makeRoom makes room for an event that may be dropped. It removes a waiting event of the same phase, or, if
// there are maxDroppable, the oldest event that may be dropped. It never removes a KeptEvent, which comes only
// once and on which the listener depends if this peer is killed. a.mu is held.
func (a *audience) makeRoom(e submit.Event) {
	lost := -1
	if e.Kind == submit.PhaseEvent {
		lost = slices.IndexFunc(a.waiting, func(l line) bool { return l.Kind == e.Kind && l.Phase == e.Phase })
	}
	if lost < 0 && a.droppable == maxDroppable {
		lost = slices.IndexFunc(a.waiting, func(l line) bool { return l.done == nil && l.Kind != submit.KeptEvent })
	}
	if lost >= 0 {
		a.waiting = slices.Delete(a.waiting, lost, lost+1)
		a.droppable--
	}
}

// maxBatch is the maximum number of lines that after returns.
const maxBatch = 512

// after returns the next lines after the given number.
func (a *audience) after(number uint64) []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.waiting[a.upTo(number):]
	if len(rest) == 0 && len(a.result) > 0 && a.result[0].Number > number {
		rest = a.result
	}
	return slices.Clone(rest[:min(len(rest), maxBatch)])
}

// stateEvents returns the events that describe the job's current state to a new listener.
func (a *audience) stateEvents() []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.states)
}

// upTo returns the number of waiting lines whose number is at most number. a.mu is held.
func (a *audience) upTo(number uint64) int {
	i, found := slices.BinarySearchFunc(a.waiting, number, func(l line, n uint64) int { return cmp.Compare(l.Number, n) })
	if found {
		i++
	}
	return i
}

// acknowledge handles the listener's report that the user has all lines up to number.
func (a *audience) acknowledge(number uint64) {
	a.settling.Lock()
	defer a.settling.Unlock()
	a.mu.Lock()
	n := a.upTo(number)
	had := slices.Clone(a.waiting[:n])
	clear(a.waiting[:n])
	a.waiting = a.waiting[n:]
	for _, l := range had {
		switch {
		case l.done == nil:
			a.droppable--
			a.keepState(l)
		case l.Kind == submit.ResultEvent:
			a.result = []line{l}
		}
	}
	a.mu.Unlock()
	settle(had, nil)
}

func settle(lines []line, err error) {
	for _, l := range lines {
		if l.done != nil {
			l.done(err)
		}
	}
}

// keepState keeps an event that describes the job's state, and replaces the earlier one of its kind. a.mu is
// held.
func (a *audience) keepState(l line) {
	if !(l.Kind == submit.PlacedEvent || l.Kind == submit.PhaseEvent || l.Kind == submit.ViewEvent && l.View != nil) {
		return
	}
	a.states = slices.DeleteFunc(a.states, func(before line) bool { return before.Kind == l.Kind })
	l.Number = 0
	a.states = append(a.states, l)
}

// close ends the audience for the reason err, after which no listener can come. It drops all waiting events
// and calls their done functions with err.
func (a *audience) close(err error) {
	a.settling.Lock()
	defer a.settling.Unlock()
	a.mu.Lock()
	if a.closed != nil {
		a.mu.Unlock()
		return
	}
	a.closed = err
	lost := a.waiting
	a.waiting = nil
	a.mu.Unlock()
	settle(lost, err)
}
