package peer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A line is an event on its way to the p2prun that follows a job on the control socket: a line of
// JSON, and behind it the Data of an output event as it is.
type line struct {
	Number  uint64 `json:"number"`            // to be acknowledged with all before it; 0: not
	Record  uint64 `json:"record,omitempty"`  // see job.Event
	Records uint64 `json:"records,omitempty"` // likewise
	Size    int    `json:"size,omitempty"`    // of the Data behind the line
	job.Event
	done func(error) // nil of an event that may be lost
}

// An audience is what a job has said, and whoever listens has not acknowledged. It outlives
// the listener: the next one is told the rest, so that nothing is lost, and nothing comes
// twice but what the last one had yet to acknowledge. Output and the result wait for as long
// as it takes, and are bounded by the job, which lets no more output wait than it must; of
// all else the latest maxNews wait.
type audience struct {
	wake chan struct{} // gets a token when there is more to say

	settling sync.Mutex // held while events are done with, in their order; before mu

	mu       sync.Mutex
	said     uint64 // number of the last line
	waiting  []line // in the order of their numbers
	news     int    // of these may be lost
	standing []line // acknowledged, and still so: where the job runs, what it does, its view
	result   []line // once acknowledged: for who has come since
	closed   error  // not nil: nobody will listen any more
}

// maxNews bounds the events beside output that wait for a listener.
const maxNews = 256

func newAudience() *audience { return &audience{wake: make(chan struct{}, 1)} }

// tell is the job's Sink. It never blocks.
func (a *audience) tell(e job.Event, done func(error)) {
	waited := e.Kind == job.OutputEvent || e.Kind == job.ResultEvent
	if a.add(e, done, waited) {
		if !waited {
			done(nil)
		}
		return
	}
	a.settling.Lock() // until those before it have been done with
	defer a.settling.Unlock()
	done(a.closed) // which stays
}

// add puts an event in line, and reports whether anybody may listen yet.
func (a *audience) add(e job.Event, done func(error), waited bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed != nil {
		return false
	}
	if !waited {
		a.thin(e)
		a.news++
		done = nil
	}
	a.said++
	a.waiting = append(a.waiting, line{Number: a.said, Record: e.Record, Records: e.Records, Event: e, done: done})
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// thin makes room for an event that may be lost: one is that says less of the same, or the
// oldest when there are too many, but not that the job is kept, which is said once and decides
// what the listener does when this peer is killed. mu is held.
func (a *audience) thin(e job.Event) {
	lost := -1
	if e.Kind == job.PhaseEvent {
		lost = slices.IndexFunc(a.waiting, func(l line) bool { return l.Kind == e.Kind && l.Phase == e.Phase })
	}
	if lost < 0 && a.news == maxNews {
		lost = slices.IndexFunc(a.waiting, func(l line) bool { return l.done == nil && l.Kind != job.KeptEvent })
	}
	if lost >= 0 {
		a.waiting = slices.Delete(a.waiting, lost, lost+1)
		a.news--
	}
}

// maxBatch is how many lines are taken at a time.
const maxBatch = 512

// after returns the next lines after that of the number.
func (a *audience) after(number uint64) []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.waiting[a.upTo(number):]
	if len(rest) == 0 && len(a.result) > 0 && a.result[0].Number > number {
		rest = a.result
	}
	return slices.Clone(rest[:min(len(rest), maxBatch)])
}

// preface returns what a new listener should know of what others have acknowledged.
func (a *audience) preface() []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.standing)
}

// upTo returns how many lines wait up to that of the number. mu is held.
func (a *audience) upTo(number uint64) int {
	i, found := slices.BinarySearchFunc(a.waiting, number, func(l line, n uint64) int { return cmp.Compare(l.Number, n) })
	if found {
		i++
	}
	return i
}

// acknowledge takes the listener's word that the user has all lines up to that of the number.
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
			a.news--
			a.stand(l)
		case l.Kind == job.ResultEvent:
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

// stand keeps an event that says how things are, in place of the one before. mu is held.
func (a *audience) stand(l line) {
	if !(l.Kind == job.PlacedEvent || l.Kind == job.PhaseEvent || l.Kind == job.ViewEvent && l.View != nil) {
		return
	}
	a.standing = slices.DeleteFunc(a.standing, func(before line) bool { return before.Kind == l.Kind })
	l.Number = 0
	a.standing = append(a.standing, l)
}

// close ends all waiting: nobody will listen any more, for the reason err.
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
